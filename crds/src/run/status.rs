//! The kind `BenchmarkRun`: what the operator answers.

#![expect(clippy::doc_markdown, reason = "kubectl explain prints these comments as they are")]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

use crate::cluster::not_observed;
use crate::condition::Condition;
use crate::run::OsuBenchmark;
use crate::types::Time;

/// status is what the operator did and measured. Only the operator writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BenchmarkRunStatus {
    /// conditions are Succeeded (the verdict), Finished (true on success and on failure),
    /// ResultsReady; Simulated when AWS is a simulator; Reconciling and Stalled only while true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// observedGeneration is the generation of the spec this status speaks of. Default: -1, not
    /// seen yet.
    #[serde(default = "not_observed")]
    #[schemars(range(min = -1, max = 9_007_199_254_740_991_i64))]
    pub observed_generation: i64,
    /// clusterUid is the uid of the HPCCluster the attempts are submitted to. Empty until it is
    /// ready for them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub cluster_uid: String,
    /// startTime is when the first attempt was submitted, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// completionTime is when the last attempt ended, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// progress counts the attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<RunProgress>,
    /// result is the run in one number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult>,
    /// attempts are the jobs of the run, at most 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub attempts: Vec<AttemptStatus>,
    /// cells are the summaries of the matrix' cells, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub cells: Vec<CellStatus>,
    /// resultsRefs are the immutable ConfigMaps of the run's namespace that hold the full numbers,
    /// one for each attempt that ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend(
        "x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub results_refs: Vec<ResultsRef>,
}

impl Default for BenchmarkRunStatus {
    fn default() -> Self {
        Self {
            conditions: Vec::new(),
            observed_generation: not_observed(),
            cluster_uid: String::new(),
            start_time: None,
            completion_time: None,
            progress: None,
            result: None,
            attempts: Vec::new(),
            cells: Vec::new(),
            results_refs: Vec::new(),
        }
    }
}

/// How far a run has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunProgress {
    /// completed is the number of attempts that ended, well or not.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub completed: i32,
    /// failed is the number of attempts that ended without a valid number.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub failed: i32,
    /// total is the number of attempts of the run.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub total: i32,
    /// summary is completed and total as text. Example: 3/6.
    #[schemars(length(max = 16))]
    pub summary: String,
    /// message says what the run is doing now.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub message: String,
}

/// A run in one number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// headline is the run's most telling number with its unit, at most 9 characters. Example:
    /// 17.2us.
    #[schemars(length(max = 9))]
    pub headline: String,
    /// verdict says whether the number may be trusted. Absent while the run goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub verdict: Option<String>,
}

/// One execution of a cell: one job of the scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptStatus {
    /// id of the attempt, also the scheduler's job name and the name of its folder.
    #[schemars(length(min = 1, max = 60), regex(pattern = "^[a-z0-9-]+$"))]
    pub id: String,
    /// cell is the name of the cell the attempt belongs to.
    #[schemars(length(max = 64))]
    pub cell: String,
    /// repeat is the number of this execution within its cell, from 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub repeat: i32,
    /// state is Pending (not submitted), Submitted (in the scheduler), Running, Succeeded (a valid
    /// number), Failed (ended with an error) or Invalid (ended, but its evidence does not hold).
    pub state: AttemptState,
    /// jobId is the scheduler's number of the job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub job_id: String,
    /// reason says in one word why the attempt failed or is invalid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub reason: String,
    /// message says in a sentence why the attempt failed or is invalid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub message: String,
    /// value is the attempt's number, a decimal in the unit of its cell. Empty without a valid one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub value: String,
    /// unknownSince is since when the head, though ready, does not know the attempt, in UTC. Absent
    /// while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_since: Option<Time>,
    /// startedAt is when the job started, by the node's clock, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// finishedAt is when the job ended, by the node's clock, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

/// How far an attempt has come.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum AttemptState {
    /// Not submitted yet.
    #[default]
    Pending,
    /// Known to the scheduler.
    Submitted,
    /// Running on its nodes.
    Running,
    /// Ended with a complete log whose evidence holds.
    Succeeded,
    /// Ended with an error, or lost.
    Failed,
    /// Ended, but its number must not be used.
    Invalid,
}

impl AttemptState {
    /// Whether nothing more happens to the attempt.
    pub fn is_final(self) -> bool {
        match self {
            Self::Pending | Self::Submitted | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Invalid => true,
        }
    }
}

/// The summary of one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CellStatus {
    /// name of the cell, unique in the run. Example: latency-2n.
    #[schemars(length(max = 64))]
    pub name: String,
    /// nodes is the number of nodes.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub nodes: i32,
    /// benchmark is the program that was run.
    pub benchmark: OsuBenchmark,
    /// n is the number of valid attempts in the numbers below.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub n: i32,
    /// median over the valid attempts, a decimal in `unit`. Empty without a valid attempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub median: String,
    /// unit of `median`. Example: us.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 16))]
    pub unit: String,
    /// rsdPercent is the relative standard deviation over the valid attempts, a decimal in percent.
    /// Empty with fewer than two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub rsd_percent: String,
    /// direction says which numbers are better: LowerIsBetter or HigherIsBetter.
    pub direction: Direction,
    /// validity is Pending (attempts outstanding), Valid (all attempts valid), Partial (some), or
    /// Invalid (none).
    pub validity: Validity,
}

/// Which numbers are better.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Direction {
    /// Times.
    #[default]
    LowerIsBetter,
    /// Rates.
    HigherIsBetter,
}

/// How far a cell's numbers may be used.
#[derive(
    Clone, Copy, Debug, Default, Display, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum Validity {
    /// Attempts are outstanding.
    #[default]
    Pending,
    /// Every attempt is valid.
    Valid,
    /// Some attempts are valid.
    Partial,
    /// No attempt is valid.
    Invalid,
}

/// A ConfigMap with results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultsRef {
    /// name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// sha256 of its content, in hexadecimal.
    #[schemars(length(min = 64, max = 64), regex(pattern = "^[0-9a-f]{64}$"))]
    pub sha256: String,
}
