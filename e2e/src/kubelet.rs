//! The lab plays kubelet and deployment controller for one Deployment: it reads it back from the
//! apiserver, makes the pod (so that admission judges it), and runs our program with exactly the
//! pod's arguments and environment, its own service account's token and its probes.
//!
//! Where this differs from a node, and why:
//! - the token is given by a kubeconfig in `KUBECONFIG`: the in-cluster path is fixed, and many
//!   operators run side by side on one machine;
//! - no network namespace (releases get different ports) and no other user (the checkout may lie
//!   where only its owner can read);
//! - a container that ends is started again at once, not after ten seconds.

mod plan;
mod pod;
mod probe;
mod supervisor;

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::control_plane::ControlPlane;
use crate::error::{LabError, Result};
use crate::eventually::eventually;
use crate::kubeconfig::Endpoint;
use crate::places;
use crate::process::{Identity, Lifetime};
use plan::Plan;
use pod::Pod;
use supervisor::{Command, Supervisor};

/// How long a start, a stop or a kill may take until something is broken.
const ANSWER: Duration = Duration::from_mins(1);

/// What happens when the container ends by itself or by a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// It is started again in the same pod, as a kubelet does.
    Always,
    /// It stays down until [`Operator::start`]; for stories that look at the gap.
    Never,
}

/// Where a pod runs and what its programs may reach.
#[derive(Clone)]
pub struct Node {
    /// A client with all rights.
    pub client: kube::Client,
    /// What the pod's kubeconfig points to.
    pub endpoint: Endpoint,
    /// Files of the pods: logs, tokens.
    pub dir: PathBuf,
    /// How long the pods live.
    pub lifetime: Lifetime,
}

impl Node {
    /// A node of a control plane whose pods die with this process.
    pub fn of(control_plane: &ControlPlane, dir: &Path) -> Self {
        Self {
            client: control_plane.client(),
            endpoint: control_plane.endpoint().clone(),
            dir: dir.to_owned(),
            lifetime: Lifetime::WithParent(nix::sys::signal::Signal::SIGKILL),
        }
    }
}

/// What can be seen of the container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Its process, while it runs.
    pub process: Option<Identity>,
    /// What the readiness probe said last.
    pub ready: bool,
    /// How often it was started after the first time.
    pub restarts: u32,
    /// How it ended the last time.
    pub last_exit: Option<String>,
}

/// The operator of one release, running.
pub struct Operator {
    plan: Plan,
    pod_name: String,
    log: PathBuf,
    commands: mpsc::Sender<Command>,
    state: watch::Receiver<State>,
    task: JoinHandle<()>,
}

impl Operator {
    /// Reads the Deployment, makes its pod and starts `hpc-operator` in it.
    pub async fn run(node: &Node, namespace: &str, name: &str, restart: Restart) -> Result<Self> {
        let deployments: Api<Deployment> = Api::namespaced(node.client.clone(), namespace);
        let deployment = deployments.get(name).await;
        let deployment = deployment.map_err(LabError::kube(format!("read Deployment {name}")))?;
        let plan = Plan::read(&deployment)?;
        let program = places::built("hpc-operator")?;
        let pod = Pod::make(node.clone(), &deployment, plan.clone(), program).await?;
        let (pod_name, log) = (pod.name().to_owned(), pod.log());
        let (commands, requests) = mpsc::channel(8);
        let (shown, state) = watch::channel(State::default());
        let supervisor = Supervisor::new(pod, restart, shown, commands.clone());
        let task = tokio::spawn(supervisor.run(requests));
        let operator = Self { plan, pod_name, log, commands, state, task };
        operator.start().await?;
        Ok(operator)
    }

    /// Whose writes to count in the audit log.
    pub fn username(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.plan.namespace, self.plan.service_account)
    }

    /// Name of the pod.
    pub fn pod_name(&self) -> &str {
        &self.pod_name
    }

    /// Where its output goes, over all restarts.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// What can be seen of it now.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// The same, to be watched.
    pub fn watch(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.state.borrow().process.map(|process| process.pid)
    }

    /// Starts it again after [`Restart::Never`] left it down; nothing happens when it runs.
    pub async fn start(&self) -> Result<()> {
        self.ask(Command::Start).await
    }

    /// SIGKILL. Returns when it is dead; with [`Restart::Always`] a new process follows.
    pub async fn kill(&self) -> Result<()> {
        self.ask(Command::Kill).await
    }

    /// Waits until the readiness probe's URL answers 200, or fails at once if the program ended.
    pub async fn await_ready(&self, deadline: Duration) -> Result<()> {
        let Some(probe) = self.plan.readiness.clone() else {
            return Ok(());
        };
        eventually("the operator is ready", deadline, async || {
            let State { process, last_exit, .. } = self.state();
            if let (None, Some(status)) = (process, last_exit) {
                return Ok(Some(Err(self.failure(&status))));
            }
            probe::ask(&probe).await?;
            Ok(Some(Ok(())))
        })
        .await?
    }

    /// What it serves at `/metrics`, beside its readiness probe.
    pub async fn metrics(&self) -> Result<String> {
        let port = self.plan.readiness.as_ref().map_or(8080, |probe| probe.port);
        let url = format!("http://127.0.0.1:{port}/metrics");
        let failed = |source: reqwest::Error| LabError::malformed(url.clone())(source);
        let answer = reqwest::get(&url).await.map_err(failed)?;
        answer.text().await.map_err(failed)
    }

    /// SIGTERM, SIGKILL after the grace period, then the pod is deleted.
    pub async fn stop(self) -> Result<()> {
        self.ask(Command::Stop).await?;
        self.task.await.map_err(LabError::malformed("the end of the kubelet"))
    }

    async fn ask(&self, command: fn(oneshot::Sender<Result<()>>) -> Command) -> Result<()> {
        let gone = || LabError::missing("the kubelet", "its pod was stopped");
        let (answer, answered) = oneshot::channel();
        self.commands.send(command(answer)).await.map_err(|_closed| gone())?;
        match tokio::time::timeout(ANSWER, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_closed)) => Err(gone()),
            Err(_elapsed) => Err(LabError::Deadline {
                what: "the kubelet answers".to_owned(),
                within: ANSWER,
                last: format!("{:?}", self.state()),
            }),
        }
    }

    fn failure(&self, status: &str) -> LabError {
        LabError::Command {
            program: "hpc-operator".to_owned(),
            status: status.to_owned(),
            message: crate::process::tail(&self.log, 15),
        }
    }
}
