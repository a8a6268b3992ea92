//! The kind `BenchmarkRun`: what a user asks for.

#![expect(
    clippy::doc_markdown,
    clippy::doc_link_with_quotes,
    reason = "kubectl explain prints these comments as they are"
)]

mod status;

pub use status::*;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

/// spec is what to run, where and how often. Immutable: to run something else, create another.
#[derive(
    CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
)]
#[kube(
    group = "hpcops.dev",
    version = "v1alpha1",
    kind = "BenchmarkRun",
    plural = "benchmarkruns",
    shortname = "bmr",
    category = "hpc",
    namespaced,
    status = "BenchmarkRunStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "BenchmarkRun is a set of MPI jobs on an HPCCluster: one application, run over a matrix of node counts, each cell repeated. The operator submits the jobs to the cluster's scheduler, reads their output and writes the numbers to status. A run is done once; to run again, create another.",
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Succeeded\")].reason"}"#,
    printcolumn = r#"{"name":"Progress","type":"string","jsonPath":".status.progress.summary"}"#,
    printcolumn = r#"{"name":"Result","type":"string","jsonPath":".status.result.headline"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct BenchmarkRunSpec {
    /// clusterRef names the HPCCluster of the same namespace to run on.
    pub cluster_ref: ClusterRef,
    /// runAs is the user of the cluster who runs the jobs. Default: the cluster's first. Example:
    /// alice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub run_as: Option<String>,
    /// application is what to run. Exactly one of: osu.
    pub application: ApplicationSpec,
    /// mpi is the MPI library that starts the application. Default: implementation OpenMPI.
    #[serde(default)]
    pub mpi: MpiSpec,
    /// matrix spans the cells of the run.
    pub matrix: MatrixSpec,
    /// repeats says how often each cell is run. Default: count 3.
    #[serde(default)]
    pub repeats: RepeatsSpec,
}

/// A reference to an `HPCCluster` of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRef {
    /// name of the HPCCluster. Required. It need not exist yet: the run waits for it.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationSpec {
    /// osu runs OSU micro-benchmarks between two ranks. Exactly one of: osu.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub osu: Option<OsuSpec>,
}

/// OSU micro-benchmarks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OsuSpec {
    /// benchmarks are the programs to run: Latency (osu_latency), Bandwidth (osu_bw). Default:
    /// both. Other values may appear.
    #[serde(default = "OsuSpec::default_benchmarks")]
    #[schemars(length(min = 1, max = 2), extend("x-kubernetes-list-type" = "set"))]
    pub benchmarks: Vec<OsuBenchmark>,
    /// programPath is the folder on the cluster's nodes that holds the programs (`osu_latency`,
    /// `osu_bw`, or their mpi4py ports `osu_latency.py`, `osu_bw.py`). Required, absolute. Example:
    /// /fsx/osu.
    #[schemars(length(max = 256))]
    pub program_path: String,
    /// arguments are passed to every program, one item each, at most 16. Default: none. Example:
    /// ["-m", "1:4194304"].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 128)), extend("x-kubernetes-list-type" = "atomic"))]
    pub arguments: Vec<String>,
}

impl OsuSpec {
    fn default_benchmarks() -> Vec<OsuBenchmark> {
        vec![OsuBenchmark::Latency, OsuBenchmark::Bandwidth]
    }
}

impl Default for OsuSpec {
    fn default() -> Self {
        Self {
            benchmarks: Self::default_benchmarks(),
            program_path: String::new(),
            arguments: Vec::new(),
        }
    }
}

/// One OSU micro-benchmark.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    Display,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum OsuBenchmark {
    /// `osu_latency`: time of a message between two ranks, in microseconds.
    #[default]
    Latency,
    /// `osu_bw`: bandwidth between two ranks, in MB/s.
    Bandwidth,
}

/// The MPI library.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MpiSpec {
    /// implementation of MPI. Default: OpenMPI. Other values may appear.
    #[serde(default)]
    pub implementation: MpiImplementation,
}

/// An implementation of MPI.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum MpiImplementation {
    /// Open MPI.
    #[default]
    #[serde(rename = "OpenMPI")]
    #[strum(serialize = "OpenMPI")]
    OpenMpi,
}

/// The cells of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatrixSpec {
    /// nodes are the node counts to run on, 1 to 8 different ones. The osu programs run between
    /// two ranks: on 1 node, or on 2. Required. Example: [1, 2].
    #[schemars(length(min = 1, max = 8), inner(range(min = 1, max = 16)), extend("x-kubernetes-list-type" = "set"))]
    pub nodes: Vec<i32>,
    /// queue is the queue of the cluster to run in. Default: the cluster's first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub queue: Option<String>,
}

/// How often each cell is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepeatsSpec {
    /// count is the number of attempts of each cell, 1 to 64. Default: 3.
    #[serde(default = "RepeatsSpec::default_count")]
    #[schemars(range(min = -1_000_000, max = 1_000_000))]
    pub count: i32,
}

impl RepeatsSpec {
    fn default_count() -> i32 {
        3
    }
}

impl Default for RepeatsSpec {
    fn default() -> Self {
        Self { count: Self::default_count() }
    }
}
