//! What exists for a run: its stored status, its cluster, its jobs, their outputs, its results.

use std::collections::{BTreeMap, BTreeSet};

use hpc_crds::BenchmarkRunStatus;
use serde::Deserialize;

use crate::cloud::{Failure, InstanceId};

/// Everything read in one pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The object as the cache has it.
    pub object: Object,
    /// The cluster it names, when it exists.
    pub cluster: Option<ClusterSeen>,
    /// What the head said of attempts under way, by attempt id.
    pub polls: BTreeMap<String, Poll>,
    /// Whole outputs fetched so far, by attempt id.
    pub outputs: BTreeMap<String, Vec<u8>>,
    /// Names of the results `ConfigMap`s that exist.
    pub results: BTreeSet<String>,
    /// Reads that failed.
    pub failures: Vec<Failure>,
}

/// The Kubernetes side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object {
    /// Whether our finalizer is on it.
    pub finalizer: bool,
    /// Status as last stored.
    pub status: BenchmarkRunStatus,
}

/// The cluster, as far as a run is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSeen {
    /// Its uid.
    pub uid: String,
    /// Whether it is going away.
    pub deleting: bool,
    /// Whether it is Ready.
    pub ready: bool,
    /// Message of its Ready condition.
    pub message: String,
    /// Where questions go.
    pub head: Option<Head>,
    /// Mount path of its first file system.
    pub storage_path: Option<String>,
    /// Its queues, in order.
    pub queues: Vec<QueueSeen>,
    /// Who has an account there; the first runs what names nobody.
    pub users: Vec<String>,
    /// Its image family.
    pub image_family: String,
    /// Its image.
    pub image_id: String,
}

/// A queue of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSeen {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: i32,
    /// Whether they carry EFA.
    pub efa: bool,
}

/// A head that can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its region.
    pub region: String,
    /// Its instance.
    pub instance: InstanceId,
}

/// What the head says of one attempt. Missing fields are unknown.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Poll {
    /// The attempt.
    pub id: String,
    /// How far it is.
    pub phase: Phase,
    /// The scheduler's number of its job.
    pub job_id: Option<String>,
    /// The scheduler's reason why it waits.
    pub reason: String,
    /// What its last act wrote.
    pub exit: Option<Exit>,
    /// Bytes of output so far.
    pub output_bytes: u64,
}

/// How far an attempt is on the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, strum::Display)]
pub enum Phase {
    /// In the scheduler, not started.
    Queued,
    /// Started.
    Running,
    /// Its exit file is there.
    Finished,
    /// The scheduler does not know it, and there is no exit file.
    Lost,
    /// Nobody can say now; also any word of a newer head.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The exit file of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Exit {
    /// Exit code of the application's script.
    pub code: i32,
    /// Epoch seconds at which the job began, by the node's clock.
    pub started_at: f64,
    /// Epoch seconds at which it ended.
    pub finished_at: f64,
    /// Hosts of the allocation.
    pub hosts: Vec<String>,
    /// The scheduler's number of the job, as the job itself was told.
    pub job_id: String,
}
