//! A whole cluster in bodies: the real user data, the real document, a real job.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::lab::{DNS_NAME, Lab, members, namespace, no_loop_is_left, spec, until};
use crate::machine::{ExecEnd, Machines as _};

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../operator/plan/node")
}

fn render(arguments: &[&str]) -> Vec<u8> {
    let output = Process::new("python3")
        .arg(scripts().join("tests/render.py"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The configuration of a node as the operator writes it.
fn config(role: &str, slots: &str) -> Value {
    json!({
        "version": 1, "role": role, "clusterUid": "11111111-2222-3333-4444-555555555555",
        "clusterName": "test.quickstart", "region": "us-east-1", "headIp": "10.0.0.10",
        "queueNames": ["compute"], "multithreading": false, "localScratch": "/local", "stateVolumeId": "vol-0aaaaaaaaaaaaaaaa",
        "storage": [{"name": "fsx", "dnsName": DNS_NAME, "mountName": "abcd1234", "mountPath": "/fsx"}],
        "queues": [{
            "name": "compute", "standing": slots, "most": if slots.is_empty() { 0 } else { 2 }, "idleSeconds": 600, "cpus": 36,
            "memoryMiB": 180_000, "efa": false,
        }],
        "queue": "compute", "gang": "", "attempt": 1, "slots": slots,
        "image": {"slurmPrefix": "/opt/slurm", "mpi": {"OpenMPI": "/opt/amazon/openmpi"}, "defaultUser": "ec2-user"},
    })
}

/// The real user data for a configuration.
fn user_data(lab: &Lab, config: &Value) -> Vec<u8> {
    let path = lab.dir.join("config.json");
    fs::write(&path, config.to_string()).unwrap();
    render(&["userdata", path.to_str().unwrap()])
}

/// A head and two nodes.
struct Cluster {
    lab: Lab,
    head: String,
    nodes: Vec<String>,
}

impl Cluster {
    async fn boot() -> Option<Self> {
        let lab = Lab::new().await?;
        let head = start_head(&lab, &config("head", "1-2")).await;
        let mut cluster = Self { lab, head, nodes: Vec::new() };
        let begin = Instant::now();
        cluster.await_report("the head", |report| report["state"] == "Ready").await;
        println!("head ready after {:.1} s", begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        for index in 0..2 {
            let mut node = spec(11 + index);
            node.launch_index = u32::from(index);
            node.user_data = Some(user_data(&cluster.lab, &config("compute", "1-2")));
            cluster.nodes.push(cluster.lab.start(node).await);
        }
        cluster.await_report("the nodes", |report| report["fleets"][0]["ready"] == "1-2").await;
        println!("2 nodes ready after {:.1} s", begin.elapsed().as_secs_f64());
        println!("{}", cluster.lab.output(&cluster.head, include_str!("data/steps.sh")).await);
        Some(cluster)
    }

    /// Waits until the head has reported something.
    async fn await_report(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        let seen = async || {
            let report = self.lab.report();
            let is_own = report["instanceId"] == self.head.as_str();
            if is_own && is_so(&report) { Ok(()) } else { Err(report.to_string()) }
        };
        if let Err(why) = until(what, seen).await {
            panic!("{why}\n{}", self.lab.evidence().await);
        }
    }

    /// Asks the head through the real document, as Run Command would.
    async fn ask(&self, question: &Value) -> Value {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(question.to_string().as_bytes()).unwrap();
        let payload = BASE64.encode(packed.finish().unwrap());
        let document = String::from_utf8(render(&["document"])).unwrap();
        let document = document.replace("{{ payload }}", &payload);
        serde_json::from_str(&self.lab.output(&self.head, &document).await).unwrap()
    }

    async fn submit(&self, attempt: &Value) -> Value {
        let answer = self.ask(&json!({"op": "submit", "attempts": [attempt]})).await;
        answer["attempts"][0].clone()
    }

    async fn await_phase(&self, attempt: &Value, phase: &str) -> Value {
        let asked = json!([{"id": attempt["id"], "folder": attempt["folder"]}]);
        let poll = json!({"op": "poll", "heads": {&self.head: asked}});
        let seen = async || {
            let one = self.ask(&poll).await["attempts"][0].clone();
            if one["phase"] == phase { Ok(one) } else { Err(one.to_string()) }
        };
        match until(phase, seen).await {
            Ok(one) => one,
            Err(why) => panic!("{why}\n{}", self.lab.evidence().await),
        }
    }

    /// Waits until the scheduler's state on the state volume holds a word.
    async fn await_saved(&self, word: &str) {
        let script = format!("grep -q {word} /hpcops/state/slurm/job_state");
        let saved = async || {
            let left = self.lab.exec(&self.head, &script).await;
            if left.end == ExecEnd::Exited(0) { Ok(()) } else { Err(format!("{left:?}")) }
        };
        until("the scheduler's state", saved).await.unwrap();
    }

    async fn output_of(&self, attempt: &Value) -> String {
        let folder = &attempt["folder"];
        let fetch = json!({"op": "fetch", "id": attempt["id"], "folder": folder, "offset": 0});
        let page = self.ask(&fetch).await;
        assert_eq!(page["next"], Value::Null);
        let packed = BASE64.decode(page["data"].as_str().unwrap()).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*packed).read_to_string(&mut text).unwrap();
        text
    }
}

async fn start_head(lab: &Lab, config: &Value) -> String {
    let mut head = spec(10);
    head.user_data = Some(user_data(lab, config));
    lab.attach(&head.instance_id);
    lab.start(head).await
}

fn attempt(id: &str, script: &str) -> Value {
    json!({
        "id": id, "folder": format!("/fsx/.hpcops/run-1/{id}"), "user": "hpc", "queue": "compute",
        "nodes": 2, "ranksPerNode": 1, "timeLimitMinutes": 5, "script": script,
        "environment": {"GREETING": "it's $(id) \"here\""},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_job_runs_between_two_bodies_and_nothing_is_left_of_them() {
    let Some(cluster) = Cluster::boot().await else {
        return;
    };
    let attempt = attempt("a1", include_str!("data/run.sh"));
    let first = cluster.submit(&attempt).await;
    assert_eq!(first["state"], "Submitted", "{first}");
    let second = cluster.submit(&attempt).await;
    assert_eq!((&second["state"], &second["jobId"]), (&json!("Exists"), &first["jobId"]));

    let one = cluster.await_phase(&attempt, "Finished").await;
    let text = cluster.output_of(&attempt).await;
    println!("{one}\n{text}");
    assert_eq!(one["exit"]["code"], 0);
    assert_eq!(one["exit"]["hosts"], json!(["compute-1", "compute-2"]));
    assert!(one["exit"]["mpirunStartedAt"].as_f64() >= one["exit"]["startedAt"].as_f64());
    for line in [
        "rank 0 of 2 on ip-10-0-0-11.ec2.internal as 4001",
        "rank 1 of 2 on ip-10-0-0-12.ec2.internal as 4001",
        "it's $(id) \"here\"",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    nothing_is_left_after_kill(&cluster).await;
}

async fn nothing_is_left_after_kill(cluster: &Cluster) {
    let bodies = &cluster.lab.bodies;
    let ids: Vec<&String> = cluster.nodes.iter().chain([&cluster.head]).collect();
    let pids = ids.iter().map(|id| bodies.host.body(id).unwrap().pid());
    // Held open, so that their numbers are not given to others meanwhile.
    let spaces: Vec<fs::File> = pids
        .flat_map(|pid| ["mnt", "net", "pid", "uts", "ipc"].map(|kind| namespace(pid, kind)))
        .collect();
    for id in ids {
        bodies.kill(id).await.unwrap();
        bodies.kill(id).await.unwrap();
    }
    assert_eq!(bodies.running(), Vec::<String>::new());
    for space in spaces {
        let left = members(&space);
        assert!(left.is_empty(), "{left:?}");
    }
    let folder = bodies.host.rack().unwrap().folder();
    let left = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("i-")).collect();
    assert!(left.is_empty(), "{left:?}");
    no_loop_is_left(&cluster.lab).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_nodes_has_a_head_that_is_ready() {
    let Some(lab) = Lab::new().await else { return };
    let head = start_head(&lab, &config("head", "")).await;
    let cluster = Cluster { lab, head, nodes: Vec::new() };
    cluster.await_report("the head", |report| report["state"] == "Ready").await;
    let report = cluster.lab.report();
    assert_eq!((&report["fleets"], &report["demand"]), (&json!([]), &json!([])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_is_reported_with_its_last_words() {
    let Some(lab) = Lab::new().await else { return };
    let mut config = config("head", "");
    config["image"]["mpi"]["OpenMPI"] = json!("/opt/nowhere");
    let head = start_head(&lab, &config).await;
    let cluster = Cluster { lab, head, nodes: Vec::new() };
    cluster.await_report("the head", |report| report["state"] == "Failed").await;
    let report = cluster.lab.report();
    let words = json!("the image lacks an MPI: no /opt/nowhere/bin/mpirun");
    assert_eq!((&report["step"], &report["message"]), (&json!("doctor"), &words));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_head_finds_its_state_its_nodes_and_the_job_that_runs() {
    let Some(mut cluster) = Cluster::boot().await else {
        return;
    };
    let attempt =
        attempt("a2", "echo once >>\"$HOME/lines\"\nuntil [ -e go ]; do sleep 0.1; done\n");
    assert_eq!(cluster.submit(&attempt).await["state"], "Submitted");
    cluster.await_phase(&attempt, "Running").await;
    // slurmctld writes its state down within seconds; what it has not written is lost with the head.
    cluster.lab.output(&cluster.head, &scontrol("update jobid=1 comment=seen-running")).await;
    cluster.await_saved("seen-running").await;
    cluster.lab.bodies.kill(&cluster.head).await.unwrap();
    cluster.head = start_head(&cluster.lab, &config("head", "1-2")).await;
    cluster.await_report("the next head", |report| report["fleets"][0]["ready"] == "1-2").await;
    let again = cluster.submit(&attempt).await;
    assert_eq!(again["state"], "Exists", "{again}");
    cluster.await_phase(&attempt, "Running").await;
    cluster.lab.output(&cluster.head, "touch /fsx/.hpcops/run-1/a2/go").await;
    let one = cluster.await_phase(&attempt, "Finished").await;
    assert_eq!(one["exit"]["code"], 0);
    let lines = cluster.lab.output(&cluster.head, "cat /hpcops/state/home/hpc/lines").await;
    assert_eq!(lines, "once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduler_that_forgot_a_start_does_not_run_the_job_twice() {
    let Some(cluster) = Cluster::boot().await else {
        return;
    };
    let (lab, head) = (&cluster.lab, &cluster.head);
    let attempt = attempt("a4", "echo once >>\"$HOME/lines\"\nsleep 1000\n");
    lab.output(head, &scontrol("update nodename=compute-[1-2] state=drain reason=test")).await;
    cluster.submit(&attempt).await;
    cluster.await_phase(&attempt, "Queued").await;
    cluster.await_saved("a4").await;
    lab.output(head, "cp /hpcops/state/slurm/job_state /root/pending").await;
    lab.output(head, &scontrol("update nodename=compute-[1-2] state=resume")).await;
    cluster.await_phase(&attempt, "Running").await;
    lab.output(head, include_str!("data/forget.sh")).await;
    let left = async || {
        let log = lab.exec(head, "cat /fsx/.hpcops/run-1/a4/output.log").await;
        let text = String::from_utf8_lossy(&log.stdout).into_owned();
        if text.contains("this copy leaves") { Ok(()) } else { Err(text) }
    };
    until("the second copy", left).await.unwrap();
    let lines = lab.output(head, "cat /hpcops/state/home/hpc/lines").await;
    assert_eq!(lines, "once");
}

fn scontrol(arguments: &str) -> String {
    format!("/opt/slurm/bin/scontrol {arguments}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_ends_and_has_the_time_to_say_so() {
    let Some(cluster) = Cluster::boot().await else {
        return;
    };
    let cancelled = attempt("a3", "exec sleep 1000\n");
    cluster.submit(&cancelled).await;
    cluster.await_phase(&cancelled, "Running").await;
    let answer = cluster.ask(&json!({"op": "cancel", "ids": ["a3", "a9"]})).await;
    assert_eq!(answer, json!({"cancelled": ["a3"]}));
    let one = cluster.await_phase(&cancelled, "Finished").await;
    assert_eq!(one["exit"]["code"], 143, "the batch script had time to say so");
}
