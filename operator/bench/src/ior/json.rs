//! IOR's JSON, of which many versions are not JSON: a title line first, a missing bracket, text in between. So it is read
//! as what it always is: keys and values in a known order.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::run::{Run, Summary};
use super::text::push_row;
use crate::line::{Line, pattern};
use crate::number::finite;

static MEMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#""([A-Za-z][A-Za-z ]*)"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|(-?[A-Za-z0-9.+-]+))\s*(,|\}|\]|$)"#,
    )
});

/// The record that is open.
#[derive(Debug, Default, Clone)]
pub(super) struct Open {
    operation: String,
    is_summary: bool,
    values: BTreeMap<&'static str, f64>,
    line: u64,
}

/// Takes the members a line holds; whether it holds any.
pub(super) fn read(line: Line<'_>, run: &mut Run, open: &mut Open) -> bool {
    if !line.text.contains('"') || !line.ended {
        return false;
    }
    let mut any = false;
    for found in MEMBER.captures_iter(line.text) {
        let value = found.get(2).or_else(|| found.get(3)).map_or("", |value| value.as_str());
        member(&found[1], value, (run, open), line.number);
        any = true;
    }
    any
}

/// Whether a line begins a document of IOR.
pub(super) fn is_start(line: &str) -> bool {
    line.trim_start().trim_start_matches('{').trim_start().starts_with("\"Version\"")
}

fn member(key: &str, value: &str, (run, open): (&mut Run, &mut Open), line: u64) {
    match key {
        "Version" => run.version = Some(value.to_owned()),
        "Command line" => value.clone_into(&mut run.command),
        "Finished" => run.is_finished = true,
        "TestID" if !open.is_summary => run.current = value.parse().unwrap_or_default(),
        "repetitions" if !open.is_summary => run.test().repetitions = value.parse().ok(),
        "access" if matches!(value, "write" | "read") => begin(open, value, false, line),
        "operation" => begin(open, value, true, line),
        "writeMiB" | "readMiB" => {
            let operation = key.trim_end_matches("MiB").to_owned();
            run.test().maxima.extend(finite(value).map(|value| (operation, (value, line))));
        }
        _ => number(key, value, (run, open), line),
    }
}

fn begin(open: &mut Open, operation: &str, is_summary: bool, line: u64) {
    *open = Open { operation: operation.to_owned(), is_summary, line, ..Open::default() };
}

/// Keys of a record; the last of each closes it.
const KEYS: &[(&str, &str)] = &[
    ("bwMiB", "bw_mib"),
    ("iops", "iops"),
    ("latency", "latency_s"),
    ("blockKiB", "block_kib"),
    ("xferKiB", "xfer_kib"),
    ("openTime", "open_s"),
    ("wrRdTime", "transfer_s"),
    ("closeTime", "close_s"),
    ("totalTime", "total_s"),
    ("bwMaxMIB", "max"),
    ("bwMinMIB", "min"),
    ("bwMeanMIB", "mean"),
    ("bwStdMIB", "stdev"),
    ("MeanTime", "mean_s"),
    ("TestID", "test"),
    ("numTasks", "tasks"),
    ("tasksPerNode", "tasks_per_node"),
    ("repetitions", "repetitions"),
    ("xsizeMiB", "size_mib"),
];

fn number(key: &str, value: &str, (run, open): (&mut Run, &mut Open), line: u64) {
    let Some((_, name)) = KEYS.iter().find(|(known, _)| *known == key) else {
        return fact(key, value, run, line);
    };
    if open.operation.is_empty() {
        return;
    }
    // A value that is no number ("inf") leaves the record without it.
    open.values.extend(finite(value).map(|value| (*name, value)));
    if (open.is_summary && key == "xsizeMiB") || (!open.is_summary && key == "totalTime") {
        let done = std::mem::take(open);
        close(run, done);
    }
}

fn close(run: &mut Run, done: Open) {
    if !done.is_summary {
        return push_row(run.test(), &done.operation, done.values, done.line);
    }
    let id = done.values.get("test").and_then(|id| format!("{id:.0}").parse().ok());
    let test = run.tests.entry(id.unwrap_or(run.current)).or_default();
    test.summary.insert(done.operation, Summary { values: done.values, line: done.line });
}

fn fact(key: &str, value: &str, run: &mut Run, line: u64) {
    let name = match key {
        "nodes" => "nodes",
        "tasks" => "tasks",
        "clients per node" => "tasks_per_node",
        _ => return,
    };
    run.test().facts.extend(finite(value).map(|value| (name, (value, line))));
}
