//! The cloud seam and its implementation on the AWS SDK: the only crate that knows SDK types.
//!
//! [`Cloud`] has two verbs for the cluster loop, `observe` and `apply`, one for a cluster at rest,
//! `report`, and one for jobs, `run`.
//! It decides nothing: a [`Step`] carries everything needed to do it. What it does guard is what
//! must hold even when the caller is wrong: ownership before anything is given back, the
//! installation's limits before anything is launched, and the pace of calls.

mod act;
mod action;
mod bucket;
mod cache;
mod error;
mod fleet;
mod guard;
mod observe;
mod offer;
mod price;
mod region;
mod run;
mod status;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use hpc_plan::cloud::{Failure, FileSystemId, InstanceId, SubnetId};
use hpc_plan::cluster::{Observed, Report, Step};
use hpc_plan::names::Owner;

pub use price::price;
pub use region::{Aws, Heard, Listener};

/// AWS as the operator sees it.
#[async_trait]
pub trait Cloud: Send + Sync {
    /// Reads everything the planner needs of AWS: all fields of [`Observed`] but `object`.
    /// Never fails: reads that did are listed in [`Observed::failures`].
    async fn observe(&self, query: &Query) -> Observed;

    /// Reads of all that only what the head reports. One call serves the clusters that ask at the
    /// same time.
    async fn report(&self, region: &str, parameter: &str) -> Result<Option<Report>, Failure>;

    /// Carries out one step, the finalizer ones excepted: they are not the cloud's. Answers the
    /// ids it made or found made.
    async fn apply(&self, scope: &Scope, step: &Step) -> Result<Vec<String>, Failure>;

    /// Runs the installation's document on instances and waits for its output.
    async fn run(&self, request: &RunRequest) -> Result<Vec<RunAnswer>, Failure>;
}

/// For whom, and where, something is read or done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Region of every call.
    pub region: String,
    /// Whose resources.
    pub owner: Owner,
    /// What a launch may not exceed.
    pub limits: Limits,
}

/// Bounds over the whole installation, checked again right before each launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most live instances, heads included.
    pub max_instances: i64,
    /// Most cost per hour, micro-dollars.
    pub max_hourly_cost: i64,
}

/// What to read for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Whose, and where.
    pub scope: Scope,
    /// Subnets the spec names.
    pub subnets: Vec<SubnetId>,
    /// Types the spec names.
    pub types: Vec<String>,
    /// The image to look for.
    pub image: ImageQuery,
    /// Name of this build's SSM document.
    pub document: String,
    /// Name of the parameter through which the head reports.
    pub parameter: String,
    /// File systems known from status: read by id, which costs one call.
    pub file_systems: Vec<FileSystemId>,
    /// Whether all file systems are listed as well: while an id is unknown, and before the
    /// finalizer goes.
    pub list_file_systems: bool,
    /// Least time between two looks at the machines' health, over all clusters of a region.
    pub status_poll: Duration,
    /// Nothing read before this call will do, not even a second ago.
    pub fresh: bool,
}

/// How the image is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ImageQuery {
    /// By id, pinned by status or by the user.
    Id(String),
    /// The newest one of an official family, for the architecture of a type.
    Family {
        /// Who publishes it, `amazon`.
        owner: String,
        /// Patterns of its name, with `*`, by architecture (`x86_64`, `arm64`).
        names: BTreeMap<String, String>,
        /// The head's type.
        instance_type: String,
    },
}

/// A command for the machines: one document, one payload, up to 50 instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// Region of the instances.
    pub region: String,
    /// Where it runs.
    pub instances: Vec<InstanceId>,
    /// Name of the document.
    pub document: String,
    /// Its only parameter.
    pub payload_base64: String,
    /// How long the caller waits, at least a second.
    pub timeout: Duration,
}

/// What one instance answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAnswer {
    /// Where.
    pub instance: InstanceId,
    /// SSM's word for how it went: `Success`, `Failed`, `TimedOut`, `Undeliverable`, …;
    /// `InProgress` when the caller's patience ended first.
    pub status: String,
    /// Exit code; -1 while there is none.
    pub exit_code: i32,
    /// Standard output, its first 24,000 characters.
    pub stdout: String,
    /// Standard error, its first 8,000 characters.
    pub stderr: String,
}

impl RunAnswer {
    /// Whether the command ran to its end with exit code 0.
    pub fn succeeded(&self) -> bool {
        self.status == "Success" && self.exit_code == 0
    }
}
