//! The real Kubernetes control plane, without nodes: etcd, kube-apiserver and the controllers the
//! stories need, on ephemeral ports of loopback. The lab itself plays the missing kubelet.

mod arguments;
mod keys;

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde::{Deserialize, Serialize};

use crate::audit::AuditLog;
use crate::error::{LabError, Result};
use crate::eventually::eventually;
use crate::kubeconfig::{self, Endpoint};
use crate::places;
use crate::process::{Identity, Lifetime, Process, Spawn, free_port};

/// How long the apiserver may take until it is ready; it takes about two seconds.
const READY: Duration = Duration::from_mins(1);
/// How often a start is tried again when another process took a port in between.
const TRIES: u32 = 3;

/// A running control plane.
pub struct ControlPlane {
    files: Files,
    endpoint: Endpoint,
    client: Client,
    /// In the order in which they are stopped.
    processes: Vec<Process>,
}

impl ControlPlane {
    /// Starts one that keeps its files in `dir` and dies with this process.
    pub async fn start(dir: &Path) -> Result<Self> {
        Self::start_for(dir, Lifetime::WithParent(nix::sys::signal::Signal::SIGKILL)).await
    }

    /// Starts one with a chosen lifetime.
    pub async fn start_for(dir: &Path, lifetime: Lifetime) -> Result<Self> {
        let programs = places::control_plane_programs().await?;
        let files = Files::new(dir)?;
        keys::make(&files).await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let start = Start { programs: &programs, files: &files, lifetime };
            match start.all().await {
                Err(error) if tries < TRIES && start.lost_a_port() => drop(error),
                started => return started,
            }
        }
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Where the apiserver is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A kubeconfig with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.files.kubeconfig()
    }

    /// The witness of all writes.
    pub fn audit(&self) -> AuditLog {
        AuditLog::at(self.files.audit_log())
    }

    /// What its processes are, to stop them from another lab command.
    pub fn identities(&self) -> Vec<Identity> {
        self.processes.iter().map(Process::identity).collect()
    }

    /// Stops it. What it stored is thrown away, so nobody is asked to finish anything: an
    /// apiserver that is asked politely waits for an etcd that may be gone.
    pub async fn stop(mut self) -> Result<()> {
        for process in &mut self.processes {
            process.kill().await?;
        }
        Ok(())
    }
}

/// A client for the holder of a kubeconfig.
pub async fn client_of(kubeconfig: &Path) -> Result<Client> {
    // Two providers are compiled into some programs that use the lab; the first choice stays.
    let _chosen_before = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let what = || format!("the kubeconfig {}", kubeconfig.display());
    let read = Kubeconfig::read_from(kubeconfig).map_err(LabError::malformed(what()))?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(LabError::malformed(what()))?;
    config.read_timeout = Some(Duration::from_secs(290));
    Client::try_from(config).map_err(LabError::kube("make a client"))
}

/// The files of a control plane.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Files {
    dir: PathBuf,
}

impl Files {
    fn new(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).map_err(LabError::io("create", dir))?;
        Ok(Self { dir: dir.to_owned() })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn kubeconfig(&self) -> PathBuf {
        self.at("kubeconfig")
    }

    fn audit_log(&self) -> PathBuf {
        self.at("audit.log")
    }

    fn ca(&self) -> PathBuf {
        self.at("ca.crt")
    }
}

/// One attempt to start everything.
struct Start<'a> {
    programs: &'a Path,
    files: &'a Files,
    lifetime: Lifetime,
}

impl Start<'_> {
    async fn all(&self) -> Result<ControlPlane> {
        let ports = arguments::Ports { etcd: free_port()?, peer: free_port()?, api: free_port()? };
        let etcd = self.spawn("etcd", arguments::etcd(self.files, &ports))?;
        let mut api = self.spawn("kube-apiserver", arguments::apiserver(self.files, &ports))?;
        let url = format!("https://127.0.0.1:{}", ports.api);
        let endpoint = Endpoint { url, ca: self.files.ca() };
        let client = self.await_ready(&endpoint, &mut api).await?;
        let controllers =
            self.spawn("kube-controller-manager", arguments::controllers(self.files))?;
        await_controllers(&client).await?;
        let processes = vec![controllers, api, etcd];
        Ok(ControlPlane { files: self.files.clone(), endpoint, client, processes })
    }

    fn spawn(&self, name: &str, args: Vec<String>) -> Result<Process> {
        let log = self.files.at(&format!("{name}.log"));
        Spawn::new(self.programs.join(name), args, log).lifetime(self.lifetime).start()
    }

    /// The apiserver makes its own certificates, so there is no client before it listens.
    async fn await_ready(&self, endpoint: &Endpoint, api: &mut Process) -> Result<Client> {
        eventually("the apiserver is ready", READY, async || {
            if let Some(status) = api.exited() {
                return Ok(Some(Err(api.failure(&status.to_string()))));
            }
            keys::write_ca(self.files)?;
            let token = keys::token(self.files)?;
            let who = kubeconfig::Identity::Token(token);
            kubeconfig::write(&self.files.kubeconfig(), endpoint, &who, "default")?;
            let client = client_of(&self.files.kubeconfig()).await?;
            is_ready(&client).await?;
            Ok(Some(Ok(client)))
        })
        .await?
    }

    /// Whether the last attempt failed because a port was taken.
    fn lost_a_port(&self) -> bool {
        ["etcd.log", "kube-apiserver.log"].iter().any(|log| {
            let text = std::fs::read_to_string(self.files.at(log)).unwrap_or_default();
            text.contains("address already in use")
        })
    }
}

async fn is_ready(client: &Client) -> Result<()> {
    let request = http_get("/readyz")?;
    client.request_text(request).await.map(drop).map_err(LabError::kube("ask whether it is ready"))
}

/// A request for a path of the apiserver that is no resource.
pub fn http_get(path: &str) -> Result<http::Request<Vec<u8>>> {
    http::Request::get(path).body(Vec::new()).map_err(LabError::malformed(path))
}

/// The controllers work once the service-account controller has made an account.
async fn await_controllers(client: &Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    eventually("the controllers work", READY, async || {
        accounts
            .get_opt("default")
            .await
            .map_err(LabError::kube("read the default service account"))
    })
    .await?;
    Ok(())
}
