//! IOR's text tables and CSV. Columns are found by label: 3.3 added two of them in the middle.
//!
//! IOR prints values of 3,600 and more without decimals and negative ones as `-`, so the form of a number says nothing.

use std::sync::LazyLock;

use regex::Regex;

use super::run::{Row, Run, Summary, Test};
use crate::line::{Line, pattern};
use crate::number::{Printed, finite, printed};

static BANNER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^IOR-(\S+): MPI Coordinated Test"));
static COMMAND: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Command line(?: used)?\s*: *(\S.*?)\s*$"));
static TEST: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\s*(?:TestID\s*: *(\d+)|Test (\d+) started:)"));
static OPTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(nodes|tasks|clients per node|repetitions|clients)\s*[:=]\s*(\d+)(?: \((\d+) per node\))?\s*$",
    )
});
static MAXIMUM: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^Max (Write|Read):\s+(\S+) MiB/sec \(\S+ MB/sec\)\s*$"));
static FINISHED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^Finished\s*: "));

/// The table that is open.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) enum Open {
    #[default]
    None,
    /// Iterations: the names of the columns after the operation, and whether commas divide them.
    Rows(Vec<&'static str>, bool),
    /// The summary.
    Summary(Vec<&'static str>),
}

/// What a line was.
#[derive(Debug, PartialEq)]
pub(super) enum Taken {
    Known,
    Banner(String),
    Unknown(String),
    Other,
}

const ROW_LABELS: &[(&str, &str)] = &[
    ("bw(MiB/s)", "bw_mib"),
    ("IOPS", "iops"),
    ("Latency(s)", "latency_s"),
    ("Latency", "latency_s"),
    ("block(KiB)", "block_kib"),
    ("xfer(KiB)", "xfer_kib"),
    ("open(s)", "open_s"),
    ("wr/rd(s)", "transfer_s"),
    ("close(s)", "close_s"),
    ("total(s)", "total_s"),
    ("numTasks", "tasks"),
    ("iter", "iteration"),
];

/// Labels of the summary that become numbers; the others are only counted.
const SUMMARY_LABELS: &[(&str, &str)] = &[
    ("Max(MiB)", "max"),
    ("Min(MiB)", "min"),
    ("Mean(MiB)", "mean"),
    ("Mean(s)", "mean_s"),
    ("#Tasks", "tasks"),
    ("tPN", "tasks_per_node"),
    ("reps", "repetitions"),
    ("Test#", "test"),
];

/// Takes a line of text or CSV.
pub(super) fn read(line: Line<'_>, run: &mut Run, open: &mut Open) -> Taken {
    if let Some(found) = BANNER.captures(line.text) {
        return Taken::Banner(found[1].to_owned());
    }
    if let Some(taken) = header(line.text, open) {
        return taken;
    }
    match open.clone() {
        Open::Rows(columns, is_csv) if row(line, run, &columns, is_csv) => return Taken::Known,
        Open::Summary(columns) if summary(line, run, &columns) => return Taken::Known,
        Open::None | Open::Rows(..) | Open::Summary(_) => {}
    }
    if line.ended && fact(line, run) { Taken::Known } else { Taken::Other }
}

/// Whether a line begins CSV.
pub(super) fn is_csv_header(text: &str) -> bool {
    text.trim_start().starts_with("access,bw(MiB/s)")
}

fn header(text: &str, open: &mut Open) -> Option<Taken> {
    let text = text.trim();
    if let Some(labels) = text.strip_prefix("access,bw(MiB/s)") {
        let labels = std::iter::once("bw(MiB/s)").chain(labels.split(',').skip(1));
        return Some(rows_header(labels, true, open));
    }
    if text.starts_with("access ") && text.contains("bw(MiB/s)") {
        return Some(rows_header(text.split_whitespace().skip(1), false, open));
    }
    if text.starts_with("Operation ") && text.contains("Max(MiB)") {
        *open = Open::Summary(summary_columns(text));
        return Some(Taken::Known);
    }
    None
}

fn rows_header<'a>(labels: impl Iterator<Item = &'a str>, is_csv: bool, open: &mut Open) -> Taken {
    let mut columns = Vec::new();
    for label in labels.map(str::trim) {
        match ROW_LABELS.iter().find(|(known, _)| *known == label) {
            Some((_, name)) => columns.push(*name),
            None => return Taken::Unknown(label.to_owned()),
        }
    }
    *open = Open::Rows(columns, is_csv);
    Taken::Known
}

/// `StdDev` comes twice, of MiB/s and of operations; only the first is the one of a rate.
fn summary_columns(text: &str) -> Vec<&'static str> {
    let mut has_deviation = false;
    let name = |label: &str| {
        if label == "StdDev" && !std::mem::replace(&mut has_deviation, true) {
            return "stdev";
        }
        SUMMARY_LABELS.iter().find(|(known, _)| *known == label).map_or("", |(_, name)| *name)
    };
    text.split_whitespace().skip(1).map(name).collect()
}

/// Takes a row of the first table, or what is left of one.
fn row(line: Line<'_>, run: &mut Run, columns: &[&'static str], is_csv: bool) -> bool {
    let separators: &[char] = if is_csv { &[','] } else { &[' ', '\t'] };
    let tokens =
        line.text.trim().split(separators).map(str::trim).filter(|token| !token.is_empty());
    let tokens: Vec<&str> = tokens.collect();
    let Some((operation, tokens)) = tokens.split_first() else { return false };
    let is_value = |token: &&str| *token == "-" || is_number(token);
    if !matches!(*operation, "write" | "read" | "remove") || !tokens.first().is_some_and(is_value) {
        return false;
    }
    if !line.ended || tokens.len() != columns.len() || !tokens.iter().all(is_value) {
        run.test().damaged.push(line.number);
        return true;
    }
    if *operation != "remove" {
        let mut read = |token: &str| run.marks.read(token, line.number);
        let named = columns.iter().zip(tokens);
        let values = named.filter_map(|(name, token)| Some((*name, read(token)?))).collect();
        push_row(run.test(), operation, values, line.number);
    }
    true
}

fn is_number(token: &str) -> bool {
    matches!(printed(token), Some(Printed::Number { .. }))
}

/// Adds a row; its iteration is the one it names.
pub(super) fn push_row(
    test: &mut Test,
    operation: &str,
    mut values: std::collections::BTreeMap<&'static str, f64>,
    line: u64,
) {
    let counted = test.of(operation).count();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small count that was printed"
    )]
    let named = values.remove("iteration").map(|iteration| iteration as u64);
    let iteration = named.unwrap_or_else(|| u64::try_from(counted).unwrap_or(u64::MAX));
    if test.of(operation).any(|row| row.iteration == iteration) {
        test.damaged.push(line);
    }
    test.rows.push(Row { operation: operation.to_owned(), iteration, values, line });
}

/// Takes a row of the summary. Some versions print more values than labels; what is labelled stands first.
fn summary(line: Line<'_>, run: &mut Run, columns: &[&'static str]) -> bool {
    let tokens: Vec<&str> = line.text.split_whitespace().collect();
    let Some((operation, tokens)) = tokens.split_first() else { return false };
    let is_first = tokens.first().is_some_and(|token| is_number(token));
    if !matches!(*operation, "write" | "read") || !is_first {
        return false;
    }
    if !line.ended || tokens.len() < columns.len() {
        run.test().damaged.push(line.number);
        return true;
    }
    let named = columns.iter().zip(tokens).filter(|(name, _)| !name.is_empty());
    let values = named
        .filter_map(|(name, token)| Some((*name, run.marks.read(token, line.number)?)))
        .collect();
    let summary = Summary { values, line: line.number };
    let test = summary.values.get("test").and_then(|id| format!("{id:.0}").parse().ok());
    let test = run.tests.entry(test.unwrap_or(run.current)).or_default();
    test.summary.insert((*operation).to_owned(), summary);
    true
}

/// Takes what stands around the tables.
fn fact(line: Line<'_>, run: &mut Run) -> bool {
    if let Some(found) = COMMAND.captures(line.text) {
        found[1].clone_into(&mut run.command);
    } else if let Some(found) = TEST.captures(line.text) {
        let id = found.get(1).or_else(|| found.get(2)).and_then(|id| id.as_str().parse().ok());
        run.current = id.unwrap_or_default();
    } else if let Some(found) = OPTION.captures(line.text) {
        option(&found[1], &found[2], found.get(3).map(|per| per.as_str()), (run, line.number));
    } else if let Some(found) = MAXIMUM.captures(line.text) {
        let Some(value) = run.marks.read(&found[2], line.number) else { return false };
        run.test().maxima.insert(found[1].to_ascii_lowercase(), (value, line.number));
    } else {
        let is_end = FINISHED.is_match(line.text);
        run.is_finished |= is_end;
        return is_end;
    }
    true
}

fn option(name: &str, value: &str, per_node: Option<&str>, (run, line): (&mut Run, u64)) {
    let test = run.test();
    if name == "repetitions" {
        test.repetitions = value.parse().ok();
    }
    let name = match name {
        "nodes" => "nodes",
        "tasks" | "clients" => "tasks",
        "clients per node" => "tasks_per_node",
        _ => return,
    };
    test.facts.extend(finite(value).map(|value| (name, (value, line))));
    test.facts.extend(per_node.and_then(finite).map(|value| ("tasks_per_node", (value, line))));
}
