//! One pod: its object in the API, its token, and the process its container becomes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod as KubePod, Secret, ServiceAccount};
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::plan::{Plan, Source};
use super::{Node, State};
use crate::error::{LabError, Result};
use crate::kubeconfig::{self, write_private};
use crate::process::{Process, Spawn};

/// A pod whose container can be started.
pub struct Pod {
    node: Node,
    plan: Plan,
    program: PathBuf,
    dir: PathBuf,
    object: KubePod,
    env: Vec<(String, String)>,
}

impl Pod {
    /// Makes the object, gets its token and resolves its environment.
    pub async fn make(
        node: Node,
        deployment: &Deployment,
        plan: Plan,
        program: PathBuf,
    ) -> Result<Self> {
        let pods: Api<KubePod> = Api::namespaced(node.client.clone(), &plan.namespace);
        let made = pods.create(&PostParams::default(), &object(deployment, &plan)).await;
        let object = made.map_err(LabError::kube(format!("create a pod of {}", plan.name)))?;
        let dir = node.dir.join(format!("{}.{}", plan.namespace, object.name_any()));
        std::fs::create_dir_all(&dir).map_err(LabError::io("create", &dir))?;
        let mut pod = Self { node, plan, program, dir, object, env: Vec::new() };
        pod.renew_token().await?;
        pod.write_kubeconfig()?;
        pod.env = pod.environment().await?;
        Ok(pod)
    }

    /// Its name, which is the operator's identity.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// What its template says.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How long it may take to end.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.plan.grace_seconds)
    }

    /// Where its output goes.
    pub fn log(&self) -> PathBuf {
        self.dir.join("operator.log")
    }

    /// Starts the container's process.
    pub fn start(&self) -> Result<Process> {
        let mut spawn = Spawn::new(&self.program, &self.plan.args, self.log());
        spawn.env.clone_from(&self.env);
        spawn.clean = true;
        spawn.lifetime(self.node.lifetime).start()
    }

    /// Asks for a new token, bound to this pod as a projected one is.
    pub async fn renew_token(&self) -> Result<()> {
        let accounts: Api<ServiceAccount> =
            Api::namespaced(self.node.client.clone(), &self.plan.namespace);
        let account = &self.plan.service_account;
        let request = token_request(&self.object);
        let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
        let answer = answer.map_err(LabError::kube(format!("get a token of {account}")))?;
        let token = answer.status.map(|status| status.token).unwrap_or_default();
        write_private(&self.token_file(), &token)
    }

    /// Says in the API how the container fares, and with it the pod and its Deployment.
    pub async fn publish(&self, state: &State) -> Result<()> {
        let ready = state.ready;
        let client = &self.node.client;
        let namespace = &self.plan.namespace;
        let pods: Api<KubePod> = Api::namespaced(client.clone(), namespace);
        let container = self.object.spec.as_ref().and_then(|spec| spec.containers.first());
        let container = container.map(|found| (found.name.clone(), found.image.clone()));
        let pod = pod_status(state, &container.unwrap_or_default());
        patch_status(&pods, self.name(), &pod).await?;
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
        patch_status(&deployments, &self.plan.name, &deployment_status(ready)).await
    }

    /// Deletes the object; no node holds it, so it is gone at once.
    pub async fn delete(&self) -> Result<()> {
        let pods: Api<KubePod> = Api::namespaced(self.node.client.clone(), &self.plan.namespace);
        match pods.delete(self.name(), &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => other.map(drop).map_err(LabError::kube("delete the pod")),
        }
    }

    /// Adds a line to the operator's log.
    pub fn note(&self, line: &str) {
        let log = std::fs::File::options().create(true).append(true).open(self.log());
        // A note that cannot be written has nowhere else to go.
        let _lost = log.and_then(|mut log| writeln!(log, "{line}"));
    }

    fn token_file(&self) -> PathBuf {
        self.dir.join("token")
    }

    fn kubeconfig_file(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    fn write_kubeconfig(&self) -> Result<()> {
        let who = kubeconfig::Identity::TokenFile(self.token_file());
        kubeconfig::write(&self.kubeconfig_file(), &self.node.endpoint, &who, &self.plan.namespace)
    }

    /// The container's environment, and the one variable that is the lab's.
    async fn environment(&self) -> Result<Vec<(String, String)>> {
        let mut env = vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
        for name in &self.plan.env_from {
            let data = self.secret(name).await?.data.unwrap_or_default();
            env.extend(data.into_iter().map(|(key, value)| (key, text(&value.0))));
        }
        for (name, source) in &self.plan.env {
            env.push((name.clone(), self.value(source).await?));
        }
        env.push(("KUBECONFIG".to_owned(), display(&self.kubeconfig_file())));
        Ok(env)
    }

    async fn value(&self, source: &Source) -> Result<String> {
        Ok(match source {
            Source::Value(value) => value.clone(),
            Source::PodName => self.name().to_owned(),
            Source::PodNamespace => self.plan.namespace.clone(),
            Source::Secret { name, key } => {
                let data = self.secret(name).await?.data.unwrap_or_default();
                let value = data.get(key).ok_or_else(|| {
                    LabError::missing(format!("key {key} of Secret {name}"), "add it")
                })?;
                text(&value.0)
            }
        })
    }

    async fn secret(&self, name: &str) -> Result<Secret> {
        let secrets: Api<Secret> = Api::namespaced(self.node.client.clone(), &self.plan.namespace);
        secrets.get(name).await.map_err(LabError::kube(format!("read Secret {name}")))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

fn object(deployment: &Deployment, plan: &Plan) -> KubePod {
    let template = deployment.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let mut metadata = template.metadata.unwrap_or_default();
    metadata.generate_name = Some(format!("{}-", plan.name));
    metadata.namespace = Some(plan.namespace.clone());
    KubePod { metadata, spec: template.spec, status: None }
}

fn token_request(pod: &KubePod) -> TokenRequest {
    let bound_object_ref = Some(BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
    });
    let spec = TokenRequestSpec {
        audiences: Vec::new(),
        bound_object_ref,
        expiration_seconds: Some(3607),
    };
    TokenRequest { metadata: ObjectMeta::default(), spec, status: None }
}

fn deployment_status(ready: bool) -> Value {
    let count = u8::from(ready);
    let condition = json!({"type": "Available", "status": if ready { "True" } else { "False" }});
    json!({"status": {
        "replicas": 1, "updatedReplicas": 1, "readyReplicas": count, "availableReplicas": count,
        "conditions": [condition],
    }})
}

/// What a kubelet says of a pod of one container, so that kubectl shows READY and RESTARTS.
fn pod_status(state: &State, (name, image): &(String, Option<String>)) -> Value {
    let truth = |holds: bool| if holds { "True" } else { "False" };
    let condition = |type_: &str, holds| json!({"type": type_, "status": truth(holds)});
    let container_state = match (&state.process, &state.last_exit) {
        (Some(_), _) => json!({"running": {}}),
        (None, Some(exit)) => json!({"waiting": {"reason": "CrashLoopBackOff", "message": exit}}),
        (None, None) => json!({"waiting": {"reason": "ContainerCreating"}}),
    };
    json!({"status": {
        "phase": "Running",
        "conditions": [
            condition("PodScheduled", true),
            condition("Initialized", true),
            condition("ContainersReady", state.ready),
            condition("Ready", state.ready),
        ],
        "containerStatuses": [{
            "name": name, "image": image.clone().unwrap_or_default(), "imageID": "",
            "ready": state.ready, "started": state.process.is_some(),
            "restartCount": state.restarts, "state": container_state,
        }],
    }})
}

#[expect(clippy::disallowed_methods, reason = "the lab plays kubelet: pods have no other writer")]
async fn patch_status<K>(api: &Api<K>, name: &str, status: &Value) -> Result<()>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let params = PatchParams::default();
    let patched = api.patch_status(name, &params, &Patch::Merge(status)).await;
    patched.map(drop).map_err(LabError::kube(format!("write the status of {name}")))
}
