//! Every log that `logs/generate.py` writes gives the answer it writes beside it: status, completeness, reason and line,
//! and every number there is, no more and no less.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails where it cannot go on")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use hpc_bench::command::{Command, Declaration};
use hpc_bench::report::{complete, status};
use hpc_bench::{Application, Cell, Complete, Expectation, ParseError, Parsed, Stream, Table};
use serde_json::{Map, Value};

type Reading = Result<Parsed, ParseError>;

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs")
}

#[test]
fn the_logs_are_those_their_generator_writes() {
    let script = logs().join("generate.py");
    let done = Process::new("python3").arg(script).arg("--check").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn every_application_has_a_log_of_each_kind() {
    let text = fs::read_to_string(logs().join("EXPECTED.json")).unwrap();
    let answers: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    for application in ["osu", "imb", "fluent", "seissol", "nastran", "fio", "ior", "command"] {
        for kind in ["ok", "failed", "truncated", "noisy", "old", "new"] {
            let start = format!("{application}/{kind}_");
            assert!(answers.keys().any(|name| name.starts_with(&start)), "no log {start}*");
        }
    }
}

#[test]
fn every_log_gives_its_answer() {
    let text = fs::read_to_string(logs().join("EXPECTED.json")).unwrap();
    let answers: BTreeMap<String, Map<String, Value>> = serde_json::from_str(&text).unwrap();
    assert!(answers.len() >= 60, "{} logs", answers.len());
    let mut wrong = Vec::new();
    for (name, answer) in &answers {
        let reading = read(name, answer);
        let differences = differences(answer, &reading);
        if !differences.is_empty() {
            wrong.push(format!("{name}:\n  {}", differences.join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Reads a log fed in pieces, so that a number cut by a pipe is among the cases.
fn read(name: &str, answer: &Map<String, Value>) -> Reading {
    let application = match answer.get("declaration") {
        Some(path) => {
            let text = fs::read_to_string(logs().join(path.as_str().unwrap())).unwrap();
            let declaration: Declaration = serde_json::from_str(&text).unwrap();
            Application::Command(Command::new(declaration).unwrap())
        }
        None => Application::from_name(answer["application"].as_str().unwrap()).unwrap(),
    };
    let bytes = fs::read(logs().join(name)).unwrap();
    let mut stream = Stream::new(&application, &Expectation::default());
    bytes.chunks(97).for_each(|piece| stream.feed(piece));
    stream.finish()
}

fn differences(answer: &Map<String, Value>, reading: &Reading) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |what: &str, expected: Value, got: Value| {
        if expected != got {
            wrong.push(format!("{what}: expected {expected}, got {got}"));
        }
    };
    compare("status", answer["status"].clone(), status(reading, None).name().into());
    match reading {
        Ok(parsed) => {
            compare("complete", answer["complete"].clone(), complete(parsed.complete).into());
            let tables = parsed.tables.iter();
            let expected =
                answer.get("tables").and_then(Value::as_array).cloned().unwrap_or_default();
            let got: Vec<Value> =
                tables.zip(&expected).map(|(table, like)| shape(table, like)).collect();
            compare("tables", expected.len().into(), parsed.tables.len().into());
            expected
                .into_iter()
                .zip(got)
                .for_each(|(expected, got)| compare("table", expected, got));
            compare(
                "validation",
                answer.get("validation").cloned().unwrap_or_default(),
                validation(parsed),
            );
            if let Some(hosts) = answer.get("hosts") {
                compare(
                    "hosts",
                    hosts.clone(),
                    serde_json::to_value(parsed.evidence.hosts()).unwrap(),
                );
            }
            wrong.extend(metrics(answer, parsed));
        }
        Err(error) => {
            compare(
                "reason",
                answer.get("reason").cloned().unwrap_or_default(),
                error.reason.to_string().into(),
            );
            if let Some(line) = answer.get("line") {
                compare("line", line.clone(), error.line.into());
            }
            if let Some(iterations) = answer.get("iterations") {
                let progress = error.progress.unwrap();
                compare(
                    "iterations",
                    iterations.clone(),
                    serde_json::json!([progress.done, progress.asked]),
                );
            }
        }
    }
    wrong
}

/// The table as far as the answer speaks of it.
fn shape(table: &Table, like: &Value) -> Value {
    let keys = like.as_object().unwrap().keys();
    let of = |key: &str| match key {
        "benchmark" => Value::from(table.benchmark.clone()),
        "version" => table.version.clone().into(),
        "unit" => {
            let measured = table.columns.iter().find(|column| column.better.is_some());
            measured.map(|column| column.unit.to_string()).into()
        }
        "units" => {
            table.columns.iter().map(|column| Value::from(column.unit.to_string())).collect()
        }
        "columns" => table.columns.iter().map(|column| Value::from(column.name.clone())).collect(),
        "attributes" => serde_json::to_value(&table.attributes).unwrap(),
        "attempts" => table.attempts.into(),
        "damaged" => table.damaged.iter().map(|damage| Value::from(damage.size)).collect(),
        "rows" => table.rows.iter().map(row).collect(),
        other => panic!("the answer speaks of {other}"),
    };
    Value::Object(keys.map(|key| (key.clone(), of(key))).collect())
}

fn row(row: &hpc_bench::Row) -> Value {
    let cells = row.cells.iter().map(|cell| match cell {
        Cell::Number(value) => Value::from(*value),
        Cell::NotNumeric => Value::Null,
        Cell::Passed => "pass".into(),
        Cell::Failed => "fail".into(),
    });
    std::iter::once(Value::from(row.size)).chain(cells).collect()
}

fn validation(parsed: &Parsed) -> Value {
    let found = parsed.tables.iter().find_map(|table| table.validation);
    found.map_or(Value::Null, |validation| match validation {
        hpc_bench::Validation::Passed => "pass".into(),
        hpc_bench::Validation::Failed => "fail".into(),
    })
}

/// Metrics that are missing, other than expected, or not expected at all.
fn metrics(answer: &Map<String, Value>, parsed: &Parsed) -> Vec<String> {
    let mut expected =
        answer.get("metrics").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut wrong = Vec::new();
    for metric in &parsed.metrics {
        let labels: Vec<_> =
            metric.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let braces =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let name = format!("{}{braces}", metric.name);
        let value = expected.remove(&name).and_then(|value| value.as_f64());
        if !value.is_some_and(|value| (value - metric.value).abs() <= 1e-9 * value.abs()) {
            wrong.push(format!("{name}: expected {value:?}, got {}", metric.value));
        }
        assert!(metric.line > 0 || metric.value == 0.0, "{name} has a line");
    }
    wrong.extend(expected.keys().map(|name| format!("{name}: missing")));
    wrong
}

#[test]
fn a_whole_log_is_never_called_incomplete_and_a_cut_one_never_complete() {
    let text = fs::read_to_string(logs().join("EXPECTED.json")).unwrap();
    let answers: BTreeMap<String, Map<String, Value>> = serde_json::from_str(&text).unwrap();
    for (name, answer) in &answers {
        let Ok(parsed) = read(name, answer) else { continue };
        assert!(!(name.contains("truncated") && parsed.complete == Complete::Yes), "{name}");
        assert!(!(name.contains("/ok_") && parsed.complete == Complete::No), "{name}");
    }
}

#[test]
fn every_metric_and_column_has_its_line_in_the_documentation() {
    let text = fs::read_to_string(logs().join("EXPECTED.json")).unwrap();
    let answers: BTreeMap<String, Map<String, Value>> = serde_json::from_str(&text).unwrap();
    let mut missing = Vec::new();
    for (name, answer) in &answers {
        let Ok(parsed) = read(name, answer) else { continue };
        let application = answer["application"].as_str().unwrap();
        let page = logs().join(format!("../../../../docs/applications/{application}.md"));
        let page = fs::read_to_string(page).unwrap();
        let metrics = parsed.metrics.iter().map(|metric| documented(application, &metric.name));
        let columns = parsed
            .tables
            .iter()
            .flat_map(|table| &table.columns)
            .map(|column| documented(application, &column.name));
        let names = metrics.chain(columns).filter(|_| application != "command");
        missing.extend(
            names
                .filter(|name| !page.contains(&format!("`{name}`")))
                .map(|name| format!("{application}: {name}")),
        );
    }
    missing.sort();
    missing.dedup();
    assert!(missing.is_empty(), "not in docs/applications: {missing:#?}");
}

/// The name under which a page speaks of a metric: without direction and operation, or as one of a kind.
fn documented(application: &str, name: &str) -> String {
    let prefixes: &[&str] = if matches!(application, "fio" | "ior") {
        &["read_", "write_", "trim_", "mixed_"]
    } else {
        &[]
    };
    let name = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    for (start, kind) in [("window_", "window_8"), ("lat_", "lat_*"), ("slat_", "slat_*")] {
        if name.starts_with(start) {
            return kind.to_owned();
        }
    }
    name.to_owned()
}
