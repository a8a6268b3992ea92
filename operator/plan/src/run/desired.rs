//! What a run asks for: its cells and how often each is executed.

use hpc_bench::osu::Benchmark;
use hpc_crds::{BenchmarkRun, OsuBenchmark, OsuSpec};

use crate::names::{Owner, digest};

/// Switches of the installation that concern runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Installation id.
    pub installation: String,
    /// Provider that stands in for EFA on a simulated cloud; empty on a real one.
    pub simulated_fabric: String,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    /// Identity of the object.
    pub owner: Owner,
    /// Generation the rest was read from.
    pub generation: i64,
    /// Where to end.
    pub goal: Goal,
    /// The cluster it runs on, in the same namespace.
    pub cluster: String,
    /// Queue it asks for; the cluster's first when absent.
    pub queue: Option<String>,
    /// Whose job it is; the cluster's first user when absent.
    pub run_as: Option<String>,
    /// Points of the matrix.
    pub cells: Vec<Cell>,
    /// Executions of each.
    pub repeats: i32,
    /// Folder of the programs.
    pub program_path: String,
    /// Arguments of the programs.
    pub arguments: Vec<String>,
    /// MPI, as image families name it.
    pub mpi: String,
    /// Switches.
    pub settings: Settings,
}

/// Where to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Goal {
    /// Every attempt is done and told.
    Present,
    /// Nothing of it runs.
    Absent,
}

/// One point of the matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// `latency-2n`.
    pub name: String,
    /// The program.
    pub benchmark: OsuBenchmark,
    /// Nodes.
    pub nodes: i32,
}

impl Desired {
    /// Reads the spec. Total: what admission refuses cannot be here.
    pub fn new(object: &BenchmarkRun, settings: &Settings) -> Self {
        let (meta, spec) = (&object.metadata, &object.spec);
        let osu = spec.application.osu.clone().unwrap_or_default();
        Self {
            owner: Owner {
                installation: settings.installation.clone(),
                uid: meta.uid.clone().unwrap_or_default(),
                namespace: meta.namespace.clone().unwrap_or_default(),
                name: meta.name.clone().unwrap_or_default(),
            },
            generation: meta.generation.unwrap_or_default(),
            goal: if meta.deletion_timestamp.is_some() { Goal::Absent } else { Goal::Present },
            cluster: spec.cluster_ref.name.clone(),
            queue: spec.matrix.queue.clone(),
            run_as: spec.run_as.clone(),
            cells: cells(&osu, &spec.matrix.nodes),
            repeats: spec.repeats.count,
            program_path: osu.program_path,
            arguments: osu.arguments,
            mpi: spec.mpi.implementation.to_string(),
            settings: settings.clone(),
        }
    }

    /// Short derived prefix of everything the run names on the cluster.
    pub fn prefix(&self) -> String {
        let mut hash = digest(&[&self.owner.uid]);
        hash.truncate(12);
        hash
    }
}

fn cells(osu: &OsuSpec, nodes: &[i32]) -> Vec<Cell> {
    let pairs =
        nodes.iter().flat_map(|nodes| osu.benchmarks.iter().map(move |each| (*each, *nodes)));
    pairs
        .map(|(benchmark, nodes)| Cell { name: cell_name(benchmark, nodes), benchmark, nodes })
        .collect()
}

fn cell_name(benchmark: OsuBenchmark, nodes: i32) -> String {
    format!("{}-{nodes}n", program(benchmark).name())
}

/// The program behind a benchmark of the API.
pub(super) const fn program(benchmark: OsuBenchmark) -> Benchmark {
    match benchmark {
        OsuBenchmark::Latency => Benchmark::Latency,
        OsuBenchmark::Bandwidth => Benchmark::Bw,
    }
}
