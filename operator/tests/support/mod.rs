//! A stage for the shell: the model of AWS behind the cloud seam, and an API server that knows one
//! object and the preconditions of its writes.

pub mod apiserver;
pub mod model;

use std::sync::Arc;
use std::time::Duration;

use hpc_crds::{ConditionType, HpcCluster, condition};
use hpc_operator::clock::Clock;
use hpc_operator::cluster::reconcile;
use hpc_operator::context::Context;
use hpc_operator::controller::Error;
use hpc_plan::cluster::{Cluster, Numbers, Queue, Settings};
use serde_json::json;

use apiserver::ApiServer;
use model::Model;

/// Passes until a cluster must have come to rest.
const PASSES: usize = 300;

/// The shell with both its sides.
pub struct Stage {
    /// Kubernetes.
    pub server: ApiServer,
    /// AWS.
    pub model: Arc<Model>,
    ctx: Arc<Context>,
}

impl Stage {
    /// A cluster with a head, two nodes and a file system, just applied.
    pub fn new() -> Self {
        Self::with(cluster())
    }

    /// The same, but a job may make a third node come.
    pub fn growing() -> Self {
        let mut cluster = cluster();
        cluster["spec"]["aws"]["queues"][0]["maxNodes"] = json!(3);
        Self::with(cluster)
    }

    fn with(cluster: serde_json::Value) -> Self {
        let server = ApiServer::with(cluster);
        let model = Arc::new(Model::new(server.clone()));
        let settings = Settings {
            installation: "lab".to_owned(),
            agent_timeout: Duration::from_secs(40),
            boot_timeout: Duration::from_mins(1),
            lookup_window: Duration::from_secs(50),
            capacity_backoff: Duration::from_secs(10),
            ..Settings::default()
        };
        let clock = Arc::clone(&model);
        let poll = Duration::from_secs(10);
        let ctx = Context {
            clock: Clock::wound_by(move || clock.now()),
            ..Context::new(server.client(), Arc::clone(&model) as _, settings, poll)
        };
        Self { server, model, ctx: Arc::new(ctx) }
    }

    /// The numbers of the queues, as a head boots with them.
    pub fn numbers(&self) -> Vec<Numbers> {
        let cluster = Cluster::new(&self.server.object().expect("the object is there"));
        cluster.queues.iter().map(Queue::numbers).collect()
    }

    /// One pass from what is stored now.
    pub async fn pass(&self) -> Result<(), Error> {
        self.pass_from(self.server.object().expect("the object is there")).await
    }

    /// One pass from what a cache still shows.
    pub async fn pass_from(&self, cluster: HpcCluster) -> Result<(), Error> {
        reconcile(Arc::new(cluster), Arc::clone(&self.ctx)).await.map(drop)
    }

    /// Passes, and time between them, until `done`.
    pub async fn until(&self, done: impl Fn(&Self) -> bool) {
        for _ in 0..PASSES {
            if done(self) {
                return;
            }
            self.pass().await.expect("nobody else writes");
            self.model.tick();
        }
        panic!("it never came to that: {:#?}", self.server.object());
    }

    /// Whether the stored status says Ready.
    pub fn is_ready(&self) -> bool {
        let status = self.server.object().and_then(|cluster| cluster.status);
        status.is_some_and(|status| condition::is_true(&status.conditions, ConditionType::Ready))
    }
}

fn cluster() -> serde_json::Value {
    json!({
        "apiVersion": "hpcops.dev/v1alpha1",
        "kind": "HPCCluster",
        "metadata": {"name": "wing", "namespace": "cfd", "uid": "7f4e1d9a", "generation": 1},
        "spec": {"aws": {
            "region": "us-east-1",
            "network": {"headSubnetId": "subnet-a"},
            "iam": {"headInstanceProfileName": "head", "nodeInstanceProfileName": "node"},
            "head": {
                "instanceType": "c5n.2xlarge",
                "stateVolume": {"sizeGiB": 10, "deletionPolicy": "Delete"},
            },
            "queues": [{
                "name": "compute",
                "instanceTypes": ["c5n.18xlarge"],
                "minNodes": 2,
                "maxNodes": 2,
                "networkInterface": "EFA",
                "placement": "Cluster",
            }],
            "storage": [{
                "name": "fsx",
                "mountPath": "/fsx",
                "deletionPolicy": "Delete",
                "lustre": {"deploymentType": "Scratch2", "capacityGiB": 1200},
            }],
        }},
    })
}
