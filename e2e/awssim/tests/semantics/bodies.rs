//! Run Command, with scripts that really run.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use awssim::machine::{BodySpec, Command, ExecEnd, ExecOutput, HostView, MachineError, Machines};
use serde_json::{Value, json};

use crate::lab::Lab;

/// Machines that are this machine: scripts run under `sh`, and an agent is up
/// as soon as its body is.
struct Here {
    view: Arc<dyn HostView>,
    bodies: Mutex<Vec<BodySpec>>,
}

#[async_trait]
impl Machines for Here {
    async fn start(&self, body: BodySpec) -> Result<(), MachineError> {
        let id = body.instance_id.clone();
        self.bodies.lock().unwrap().push(body);
        self.view.agent_online(&id);
        Ok(())
    }

    async fn exec(&self, instance_id: &str, command: Command) -> Result<ExecOutput, MachineError> {
        let failed =
            |source| MachineError::Io { instance_id: instance_id.to_owned(), step: "sh", source };
        let child = tokio::process::Command::new("sh")
            .args(["-c", &command.script])
            .envs(command.environment)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        match tokio::time::timeout(command.timeout, child.wait_with_output()).await {
            Ok(output) => {
                let output = output.map_err(failed)?;
                let end = ExecEnd::Exited(output.status.code().unwrap_or(-1));
                Ok(ExecOutput { end, stdout: output.stdout, stderr: output.stderr })
            }
            Err(_) => {
                Ok(ExecOutput { end: ExecEnd::TimedOut, stdout: Vec::new(), stderr: Vec::new() })
            }
        }
    }

    async fn kill(&self, instance_id: &str) -> Result<(), MachineError> {
        self.bodies.lock().unwrap().retain(|body| body.instance_id != instance_id);
        Ok(())
    }

    fn running(&self) -> Vec<String> {
        self.bodies.lock().unwrap().iter().map(|body| body.instance_id.clone()).collect()
    }

    fn pid(&self, _instance_id: &str) -> Option<i32> {
        None
    }
}

/// A lab whose instances have bodies here, and what these may ask.
pub async fn embodied() -> (Lab, Arc<dyn HostView>) {
    let (tell, told) = std::sync::mpsc::channel();
    let machines = Box::new(move |view: Arc<dyn HostView>| {
        tell.send(Arc::clone(&view)).unwrap();
        Arc::new(Here { view, bodies: Mutex::default() }) as Arc<dyn Machines>
    });
    let lab = Lab::with(Some(machines)).await;
    (lab, told.recv().unwrap())
}

/// A lab with one instance whose agent is online.
async fn lab() -> (Lab, String) {
    let (lab, _) = embodied().await;
    let profile = ("IamInstanceProfile.Name", "hpcops-head");
    let id = lab.launch(&[profile, ("UserData", "aGVsbG8=")]).await.first("instanceId");
    let online = async || {
        let answer = lab.ssm("DescribeInstanceInformation", json!({})).await.value();
        answer["InstanceInformationList"].as_array().unwrap().len() == 1
    };
    lab.until("the agent is online", online).await;
    (lab, id)
}

async fn send(lab: &Lab, id: &str, script: &str, timeout: &str) -> String {
    let request = json!({
        "InstanceIds": [id], "DocumentName": "AWS-RunShellScript",
        "Parameters": {"commands": [script], "executionTimeout": [timeout]},
    });
    let answer = lab.ssm("SendCommand", request).await.value();
    answer["Command"]["CommandId"].as_str().unwrap().to_owned()
}

async fn invocation(lab: &Lab, id: &str, command: &str) -> Value {
    let request = json!({"CommandId": command, "InstanceId": id});
    lab.ssm("GetCommandInvocation", request).await.value()
}

async fn finished(lab: &Lab, id: &str, command: &str) -> Value {
    let done = async || {
        let status = invocation(lab, id, command).await["Status"].clone();
        status != "Pending" && status != "InProgress"
    };
    lab.until("the command ends", done).await;
    invocation(lab, id, command).await
}

#[tokio::test]
async fn scripts_really_run_and_their_streams_are_cut() {
    let (lab, id) = lab().await;
    let script =
        "head -c 30000 /dev/zero | tr '\\0' x; head -c 9000 /dev/zero | tr '\\0' y >&2; exit 3";
    let command = send(&lab, &id, script, "60").await;
    let ended = finished(&lab, &id, &command).await;
    assert_eq!((&ended["Status"], &ended["ResponseCode"]), (&json!("Failed"), &json!(3)));
    let length = |name: &str| ended[name].as_str().unwrap().len();
    assert_eq!((length("StandardOutputContent"), length("StandardErrorContent")), (24_000, 8_000));
    let list = json!({"CommandId": command, "Details": true});
    let listed = lab.ssm("ListCommandInvocations", list).await.value();
    let output = listed["CommandInvocations"][0]["CommandPlugins"][0]["Output"].as_str().unwrap();
    assert_eq!(output.len(), 2_500);
}

#[tokio::test]
async fn a_cancelled_command_is_killed() {
    let (lab, id) = lab().await;
    let folder = tempfile::tempdir().unwrap();
    let (begun, ended) = (folder.path().join("begun"), folder.path().join("ended"));
    let script = format!("touch {}; sleep 30; touch {}", begun.display(), ended.display());
    let command = send(&lab, &id, &script, "60").await;
    lab.until("it runs", async || begun.exists()).await;
    assert_eq!(invocation(&lab, &id, &command).await["StandardOutputContent"], "");
    lab.ssm("CancelCommand", json!({"CommandId": command})).await;
    assert_eq!(finished(&lab, &id, &command).await["Status"], "Cancelled");
    assert!(!ended.exists());
}

#[tokio::test]
async fn a_command_over_its_time_is_killed() {
    let (lab, id) = lab().await;
    let command = send(&lab, &id, "sleep 30", "5").await;
    let ended = finished(&lab, &id, &command).await;
    assert_eq!(
        (&ended["Status"], &ended["StatusDetails"]),
        (&json!("TimedOut"), &json!("ExecutionTimedOut"))
    );
}

#[tokio::test]
async fn an_own_document_passes_its_payload_and_nothing_else() {
    let (lab, id) = lab().await;
    let content = json!({
        "schemaVersion": "2.2",
        "parameters": {"payload": {"type": "String", "allowedPattern": "^[A-Za-z0-9+/=]{1,60000}$"}},
        "mainSteps": [{"action": "aws:runShellScript", "name": "runPayload",
            "inputs": {"timeoutSeconds": "60", "runCommand": ["payload='{{ payload }}'", "echo \"got $payload\""]}}],
    });
    let create =
        json!({"Name": "hpcops-x", "Content": content.to_string(), "DocumentType": "Command"});
    assert_eq!(lab.ssm("CreateDocument", create.clone()).await.code(), "OK");
    assert_eq!(lab.ssm("CreateDocument", create).await.code(), "DocumentAlreadyExists");
    let send = async |payload: &str| {
        let request = json!({
            "InstanceIds": [id], "DocumentName": "hpcops-x", "Parameters": {"payload": [payload]},
        });
        lab.ssm("SendCommand", request).await
    };
    assert_eq!(send("'; touch /x; '").await.code(), "InvalidParameters");
    let command = send("QUJD").await.value()["Command"]["CommandId"].as_str().unwrap().to_owned();
    assert_eq!(finished(&lab, &id, &command).await["StandardOutputContent"], "got QUJD\n");
    assert_eq!(lab.ssm("DeleteDocument", json!({"Name": "hpcops-x"})).await.code(), "OK");
    assert_eq!(send("QUJD").await.code(), "InvalidDocument");
}

#[tokio::test]
async fn right_after_the_send_reads_know_nothing() {
    let (lab, id) = lab().await;
    lab.delays(json!({"Invocation": 3600.0})).await;
    let command = send(&lab, &id, "true", "60").await;
    let request = json!({"CommandId": command, "InstanceId": id});
    let answer = lab.ssm("GetCommandInvocation", request).await;
    assert_eq!(answer.code(), "InvocationDoesNotExist");
    let listed = lab.ssm("ListCommandInvocations", json!({"CommandId": command})).await.value();
    assert_eq!(listed["CommandInvocations"], json!([]));
}

#[tokio::test]
async fn a_body_knows_its_place_and_dies_with_its_instance() {
    let (lab, id) = lab().await;
    let bodies = async || lab.control("GET", "bodies", json!(null)).await;
    assert_eq!(bodies().await, json!([id]));
    lab.ec2("TerminateInstances", &[("InstanceId.1", &id)]).await;
    lab.until("the body is gone", async || bodies().await == json!([])).await;
    let request = json!({
        "InstanceIds": [id], "DocumentName": "AWS-RunShellScript", "Parameters": {"commands": ["true"]},
    });
    assert_eq!(lab.ssm("SendCommand", request).await.code(), "InvalidInstanceId");
}

#[tokio::test]
async fn more_than_fifty_or_unknown_targets_are_refused() {
    let (lab, id) = lab().await;
    let send = async |ids: Vec<String>| {
        let request = json!({
            "InstanceIds": ids, "DocumentName": "AWS-RunShellScript", "Parameters": {"commands": ["true"]},
        });
        lab.ssm("SendCommand", request).await.code()
    };
    let many = (0..51).map(|number| format!("i-{number:017x}")).collect();
    assert_eq!(send(many).await, "ValidationException");
    assert_eq!(send(vec![id.clone(), id.clone()]).await, "DuplicateInstanceId");
    assert_eq!(send(vec!["i-00000000000000000".to_owned()]).await, "InvalidInstanceId");
}
