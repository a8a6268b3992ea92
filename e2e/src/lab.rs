//! One lab shared by many stories: a control plane, simulated AWS, and the tools to reach them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::OnceCell;

use crate::control_plane::ControlPlane;
use crate::error::{LabError, Result};
use crate::helm::Helm;
use crate::kubelet::Node;
use crate::places;
use crate::sim::{Awssim, Settings};
use crate::story::Story;

/// What distinguishes one run of the stories from another.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of the simulator, printed with every failure.
    pub seed: u64,
    /// Factor on simulated delays.
    pub time_scale: f64,
    /// Whether instances may have bodies: needs root.
    pub bodies: bool,
}

/// A running lab.
pub struct Lab {
    dir: tempfile::TempDir,
    control_plane: ControlPlane,
    sim: OnceCell<Awssim>,
    helm: Helm,
    kubectl: PathBuf,
    options: Options,
    stories: AtomicU32,
    requests: Mutex<Vec<Value>>,
}

impl Lab {
    /// Starts the control plane and installs the kinds.
    pub async fn start(options: Options) -> Result<Self> {
        let dir = tempfile::tempdir().map_err(LabError::io("create", std::env::temp_dir()))?;
        let control_plane = ControlPlane::start(&dir.path().join("control-plane")).await?;
        let helm = Helm::new(&control_plane.kubeconfig(), &dir.path().join("helm")).await?;
        helm.apply_crds(&control_plane.client()).await?;
        let kubectl = places::kubectl().await?.join("kubectl");
        let stories = AtomicU32::new(0);
        let requests = Mutex::default();
        let sim = OnceCell::new();
        Ok(Self { dir, control_plane, sim, helm, kubectl, options, stories, requests })
    }

    /// A story of its own namespace, account and release.
    pub async fn story(self: &Arc<Self>, name: &str) -> Result<Story> {
        let number = self.stories.fetch_add(1, Ordering::Relaxed) + 1;
        Story::begin(Arc::clone(self), name, number).await
    }

    /// The control plane.
    pub fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    /// A client with all rights.
    pub fn client(&self) -> kube::Client {
        self.control_plane.client()
    }

    /// Simulated AWS, started when the first story asks for it.
    pub async fn awssim(&self) -> Result<&Awssim> {
        let Options { seed, time_scale, bodies } = self.options;
        let settings = Settings::new(self.dir().join("awssim"), seed, time_scale, bodies);
        self.sim.get_or_try_init(async || Awssim::start(&settings).await).await
    }

    /// Simulated AWS, if a story has asked for it.
    pub fn started_awssim(&self) -> Option<&Awssim> {
        self.sim.get()
    }

    /// Keeps the requests that an account of the simulator recorded, for the oracle.
    pub fn keep_requests(&self, requests: Vec<Value>) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).extend(requests);
    }

    /// Every request kept so far.
    pub fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The real helm.
    pub fn helm(&self) -> &Helm {
        &self.helm
    }

    /// A kubectl that fits.
    pub fn kubectl(&self) -> &Path {
        &self.kubectl
    }

    /// Where the pods of this lab run.
    pub fn node(&self) -> Node {
        Node::of(&self.control_plane, &self.dir.path().join("pods"))
    }

    /// What was asked for at the start.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Files of the lab.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Stops everything, bodies first.
    pub async fn stop(mut self) -> Result<()> {
        let bodies = match self.sim.take() {
            Some(sim) => sim.stop().await,
            None => Ok(()),
        };
        self.control_plane.stop().await.and(bodies)
    }
}
