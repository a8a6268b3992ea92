//! One story's corner of the lab: its own namespace, AWS account, release, lease and installation
//! id, so that stories run side by side, and one that kills or breaks things hurts no other.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hpc_crds::{BenchmarkRun, HpcCluster};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::audit::Write;
use crate::error::{LabError, Result};
use crate::evidence;
use crate::helm::Release;
use crate::kubelet::{Operator, Restart};
use crate::lab::Lab;
use crate::process::free_port;
use crate::sim::{Resource, Sim};

/// How long an operator may take from its start until it is ready.
pub const READY: Duration = Duration::from_secs(30);

/// A story under way.
pub struct Story {
    lab: Arc<Lab>,
    name: String,
    namespace: String,
    access_key: String,
    port: u16,
}

impl Story {
    pub(crate) async fn begin(lab: Arc<Lab>, name: &str, number: u32) -> Result<Self> {
        let namespace = format!("story-{number}");
        let access_key = format!("AKIASTORY{number:07}");
        let port = free_port()?;
        let story = Self { lab, name: name.to_owned(), namespace, access_key, port };
        story.make_namespace().await?;
        story.make_credentials().await?;
        Ok(story)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lab it runs in.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Where its objects and its release are; also the release's name and installation id.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The access key that is its AWS account.
    pub fn access_key(&self) -> &str {
        &self.access_key
    }

    /// The root of a file system, seen from outside.
    pub fn file_system(&self, found: &Resource) -> PathBuf {
        self.lab.dir().join("awssim/fsx").join(&found.account).join(&found.id)
    }

    /// A client with all rights.
    pub fn client(&self) -> kube::Client {
        self.lab.client()
    }

    /// Its clusters.
    pub fn clusters(&self) -> Api<HpcCluster> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Its runs.
    pub fn runs(&self) -> Api<BenchmarkRun> {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// Its account in simulated AWS.
    pub async fn sim(&self) -> Result<Sim> {
        Ok(self.lab.awssim().await?.account(&self.access_key))
    }

    /// Its release of our chart, with `more` merged over what every story needs.
    pub async fn release(&self, more: &Value) -> Result<Release> {
        let mut values = json!({
            "installationId": self.namespace,
            "watchNamespaces": [self.namespace],
            "aws": {"endpointUrl": self.lab.awssim().await?.url(), "existingSecret": "aws"},
            "http": {"port": self.port},
            "crds": {"enabled": false},
            "rbac": {"aggregateRoles": false},
            "simulatedFabric": "tcp",
            "extraEnv": [{"name": "RUST_LOG", "value": "info"}],
        });
        merge(&mut values, more);
        Ok(Release { name: self.namespace.clone(), namespace: self.namespace.clone(), values })
    }

    /// Installs the release, starts its operator and waits until it is ready.
    pub async fn operator(&self, more: &Value, restart: Restart) -> Result<Operator> {
        let release = self.release(more).await?;
        self.lab.helm().install(&release).await?;
        let operator =
            Operator::run(&self.lab.node(), &self.namespace, &release.name, restart).await?;
        operator.await_ready(READY).await?;
        Ok(operator)
    }

    /// What an operator has written in Kubernetes so far, its lease excepted.
    pub fn writes_of(&self, operator: &Operator) -> Result<Vec<Write>> {
        self.lab.control_plane().audit().writes_by(&operator.username())
    }

    /// Applies manifests, whatever namespace they name, in this story's.
    pub async fn apply(&self, manifests: &str) -> Result<String> {
        self.kubectl(&["apply", "-f", "-"], &self.moved_here(manifests)?).await
    }

    /// Runs kubectl in this story's namespace.
    pub async fn kubectl(&self, args: &[&str], stdin: &str) -> Result<String> {
        let kubeconfig = self.lab.control_plane().kubeconfig();
        let mut command = Command::new(self.lab.kubectl());
        command.args(["--namespace", &self.namespace]).args(args).env("KUBECONFIG", kubeconfig);
        feed(command, args, stdin).await
    }

    /// Keeps what a person needs to understand a failure; gives the folder.
    pub async fn save_evidence(&self) -> Result<PathBuf> {
        evidence::save(self).await
    }

    /// Ends the account's bodies and forgets its resources, if AWS was used at all.
    pub async fn end(&self) -> Result<()> {
        match self.lab.started_awssim() {
            Some(sim) => {
                let account = sim.account(&self.access_key);
                self.lab.keep_requests(account.get("requests").await?);
                account.reset().await
            }
            None => Ok(()),
        }
    }

    async fn make_namespace(&self) -> Result<()> {
        // The standard that the chart promises to fit is enforced by real admission.
        let restricted = ("pod-security.kubernetes.io/enforce".into(), "restricted".into());
        let metadata = ObjectMeta {
            name: Some(self.namespace.clone()),
            labels: Some([restricted].into()),
            ..ObjectMeta::default()
        };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let api: Api<Namespace> = Api::all(self.client());
        let made = api.create(&PostParams::default(), &namespace).await;
        made.map(drop).map_err(LabError::kube("create the story's namespace"))
    }

    async fn make_credentials(&self) -> Result<()> {
        let data = [
            ("AWS_ACCESS_KEY_ID".to_owned(), ByteString(self.access_key.clone().into_bytes())),
            ("AWS_SECRET_ACCESS_KEY".to_owned(), ByteString(b"not-a-secret".to_vec())),
        ];
        let metadata = ObjectMeta { name: Some("aws".into()), ..ObjectMeta::default() };
        let secret = Secret { metadata, data: Some(data.into()), ..Secret::default() };
        let api: Api<Secret> = Api::namespaced(self.client(), &self.namespace);
        let made = api.create(&PostParams::default(), &secret).await;
        made.map(drop).map_err(LabError::kube("create the story's credentials"))
    }

    fn moved_here(&self, manifests: &str) -> Result<String> {
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(manifests)
            .map_err(LabError::malformed("a manifest of the story"))?;
        for object in &mut objects {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.insert("namespace".to_owned(), json!(self.namespace));
            }
        }
        // Documents, not a List: kubectl leaves the validation of a List's items to old rules.
        Ok(objects.iter().flat_map(|object| [object.to_string(), "\n---\n".to_owned()]).collect())
    }
}

/// Merges `more` into `values`, object by object; anything else replaces.
fn merge(values: &mut Value, more: &Value) {
    match (values, more) {
        (Value::Object(values), Value::Object(more)) => {
            for (key, value) in more {
                merge(values.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (values, more) if !more.is_null() => *values = more.clone(),
        _ => (),
    }
}

async fn feed(mut command: Command, args: &[&str], stdin: &str) -> Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(LabError::io("start", "kubectl"))?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(stdin.as_bytes()).await.map_err(LabError::io("write to", "kubectl"))?;
    }
    let output = child.wait_with_output().await.map_err(LabError::io("wait for", "kubectl"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(LabError::Command {
        program: format!("kubectl {}", args.join(" ")),
        status: output.status.to_string(),
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storys_values_are_merged_over_the_usual_ones() {
        let mut values = json!({"aws": {"region": "a", "endpointUrl": "b"}, "list": [1, 2]});
        merge(&mut values, &json!({"aws": {"region": "c"}, "list": [3], "dryRun": true}));
        let expected =
            json!({"aws": {"region": "c", "endpointUrl": "b"}, "list": [3], "dryRun": true});
        assert_eq!(values, expected);
    }
}
