//! The labels of Fluent's three outputs, and the lines that say why there are none.

use std::sync::LazyLock;

use regex::Regex;

use crate::facts::{Rule, compile, count, measure};
use crate::line::pattern;
use crate::parsed::Better::{Higher, Lower};

/// One of the outputs: labels and their patterns.
pub(super) struct Output {
    pub rules: &'static [Rule],
    pub patterns: LazyLock<Vec<Regex>>,
    /// What it must hold to count.
    pub needs: &'static [&'static str],
}

const CLASSIC: &[Rule] = &[
    measure("case_read_s", "s", Lower, r"^\s*Read case time\s*=\s*(\S+)"),
    measure("data_read_s", "s", Lower, r"^\s*Read data time\s*=\s*(\S+)"),
    measure("time_per_iteration_s", "s", Lower, r"^\s*Solver wall time per iteration\s*=\s*(\S+)"),
    measure("solver_speed", "", Higher, r"^\s*Solver speed\s*=\s*(\S+)"),
    measure("solver_rating", "", Higher, r"^\s*Solver rating\s*=\s*(\S+)"),
];

const TIMER: &[Rule] = &[
    count("iterations", "", r"^\s*Performance Timer for (\d+) iterations on \d+ compute nodes\s*$"),
    measure(
        "time_per_iteration_s",
        "s",
        Lower,
        r"^\s*Average wall-clock time per iteration:\s*(\S+) sec",
    ),
    count("global_reductions", "", r"^\s*Global reductions per iteration:\s*(\S+) ops"),
    count("global_reductions_s", "s", r"^\s*Global reductions time per iteration:\s*(\S+) sec"),
    count("messages", "", r"^\s*Message count per iteration:\s*(\S+) messages"),
    count("data_transfer_mb", "MB", r"^\s*Data transfer per iteration:\s*(\S+) MB"),
    count("le_solves", "", r"^\s*LE solves per iteration:\s*(\S+) solves"),
    count("le_wall_s", "s", r"^\s*LE wall-clock time per iteration:\s*(\S+) sec"),
    count("le_global_solves", "", r"^\s*LE global solves per iteration:\s*(\S+) solves"),
    count("le_global_wall_s", "s", r"^\s*LE global wall-clock time per iteration:\s*(\S+) sec"),
    count("le_global_matrix_size", "", r"^\s*LE global matrix maximum size:\s*(\S+)\s*$"),
    count("relaxation_sweeps", "", r"^\s*Relaxation sweeps per iteration:\s*(\S+) sweeps"),
    count("relaxation_exchanges", "", r"^\s*Relaxation exchanges per iteration:\s*(\S+) exchanges"),
    count("amg_cycles", "", r"^\s*AMG cycles per iteration:\s*(\S+) cycles"),
    measure("total_wall_s", "s", Lower, r"^\s*Total wall-clock time:\s*(\S+) sec"),
    measure("total_cpu_s", "s", Lower, r"^\s*Total CPU time:\s*(\S+) sec"),
    measure(
        "simulation_wall_s",
        "s",
        Lower,
        r"^\s*Simulation wall-clock time for \d+ iterations\s+(\S+) sec",
    ),
];

const HARNESS: &[Rule] = &[
    measure(
        "miups",
        "Mcell/s",
        Higher,
        r"^\s*Million Cell Iteration Per Wall Second\s*[=:]\s*(\S+)",
    ),
    measure(
        "case_read_s",
        "s",
        Lower,
        r"^\s*Average wall-clock time per case input\s*[=:]\s*(\S+)",
    ),
    measure(
        "data_read_s",
        "s",
        Lower,
        r"^\s*Average wall-clock time per data input\s*[=:]\s*(\S+)",
    ),
];

/// Result file of `fluentbench.pl`.
pub(super) static CLASSIC_OUTPUT: Output = Output {
    rules: CLASSIC,
    patterns: LazyLock::new(|| compile(CLASSIC)),
    needs: &["time_per_iteration_s", "solver_rating"],
};
/// Transcript with `/parallel/timer/usage`.
pub(super) static TIMER_OUTPUT: Output = Output {
    rules: TIMER,
    patterns: LazyLock::new(|| compile(TIMER)),
    needs: &["iterations", "time_per_iteration_s", "total_wall_s"],
};
/// Harness of 2026 R1.
pub(super) static HARNESS_OUTPUT: Output =
    Output { rules: HARNESS, patterns: LazyLock::new(|| compile(HARNESS)), needs: &["miups"] };

/// The table with which the harness ends: ranks, rate, speed-up and efficiency against its first row.
pub(super) static SCALING: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*NumProc\s+MIUPS\s+Speedup\s+Efficiency\s*$"));
pub(super) static SCALING_ROW: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(\d+)\s+(\S+)\s+(\S+)\s+(\S+?)\s*%\s*$"));

/// Ranks of a timer block; Fluent calls its processes compute nodes.
pub(super) static RANKS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\s*Performance Timer for \d+ iterations on (\d+) compute nodes\s*$")
});

/// Words of which every line of interest holds one; looked for first, because most lines hold none.
pub(super) static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)time|Solver |per iteration|LE global|Per Wall Second|error|fatal|diverge|licen[cs]e|converged|exited|signal|MIUPS",
    )
});

pub(super) static DIVERGED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\bdiverge(?:d|nce detected)\b|floating point exception"));
pub(super) static CONVERGED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^\s*!\s*\d+ solution is converged"));
pub(super) static LICENCE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)licen[cs].*(?:refused|denied|fail|unavail|not avail|in use|unable|cannot|could not|error|expired|no such|exceed|not found|not exist|already reached|wait|queue|timed? ?out|invalid|lost)|(?:fail|unable|cannot|could not|waiting|no) .*licen[cs]",
    )
});
pub(super) static FATAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^\s*(?:#\s*)?error(?: object)?:|^\s*fatal|: fatal|MPI Application rank \d+ (?:exited|killed)|^\s*Fluent received signal|segmentation (?:fault|violation)",
    )
});
