//! The pure model of AWS as a [`Cloud`], with an eye on what the shell promises around each call.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use hpc_aws::{Cloud, Query, RunAnswer, RunRequest, Scope};
use hpc_crds::IntentState;
use hpc_plan::cloud::{Failure, Kind};
use hpc_plan::cluster::{Observed, Report, Step};
use hpc_plan::names::Owner;
use hpc_plan::world::World;
use jiff::Timestamp;

use super::apiserver::ApiServer;

/// A world behind the seam.
pub struct Model {
    world: Mutex<World>,
    server: ApiServer,
    looks: AtomicU32,
}

impl Model {
    /// A world on a good day, watching what `server` stores.
    pub fn new(server: ApiServer) -> Self {
        let owner = Owner {
            installation: "lab".to_owned(),
            uid: "7f4e1d9a".to_owned(),
            namespace: "cfd".to_owned(),
            name: "wing".to_owned(),
        };
        Self { world: Mutex::new(World::new(owner)), server, looks: AtomicU32::new(0) }
    }

    /// The world itself.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// The time all parties read.
    pub fn now(&self) -> Timestamp {
        self.world().now
    }

    /// Time passes.
    pub fn tick(&self) {
        self.world().tick();
    }

    /// Whole observations so far.
    pub fn looks(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Mutating calls so far.
    pub fn calls(&self) -> u32 {
        self.world().ledger.calls.0
    }

    /// The first promise: what is created is stored before it is sent.
    fn assert_stored(&self, step: &Step) {
        let Step::Create { token, .. } = step else { return };
        let status = self.server.object().and_then(|cluster| cluster.status).unwrap();
        let open = |intent: &&hpc_crds::Intent| intent.state == IntentState::Open;
        let stored = status.intents.iter().filter(open).any(|intent| intent.token == token.0);
        assert!(stored, "{step} is not in the stored status");
    }
}

#[async_trait]
impl Cloud for Model {
    async fn observe(&self, _: &Query) -> Observed {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.world().observe()
    }

    async fn report(&self, _: &str, _: &str) -> Result<Option<Report>, Failure> {
        Ok(self.world().observe().report)
    }

    async fn apply(&self, scope: &Scope, step: &Step) -> Result<Vec<String>, Failure> {
        assert_eq!(scope.owner, self.world().owner);
        self.assert_stored(step);
        self.world().apply(step)
    }

    async fn run(&self, request: &RunRequest) -> Result<Vec<RunAnswer>, Failure> {
        Err(Failure {
            kind: Kind::Invalid,
            service: "ssm".to_owned(),
            operation: "SendCommand".to_owned(),
            code: "NoMachines".to_owned(),
            message: format!("the model runs nothing, asked for {}", request.document),
        })
    }
}
