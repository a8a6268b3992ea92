//! Every sample gives the answer that `EXPECTED.json` has for it, numbers and all. A key that is not compared fails the
//! test, so nothing of the answer can be overlooked.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails where it cannot go on"
)]

use std::fs;
use std::path::{Path, PathBuf};

use hpc_bench::report::{Status, status};
use hpc_bench::{Better, Expectation, ParseError, Parsed, Stream, Table, recognise};
use serde_json::Value;

type Reading = Result<Parsed, ParseError>;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
}

fn expected() -> serde_json::Map<String, Value> {
    let text = fs::read_to_string(samples().join("EXPECTED.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Reads as a user would: the application is recognised by what is in the file, else by its name.
fn read(name: &str) -> Reading {
    let bytes = fs::read(samples().join(name)).unwrap();
    let mut stream = Stream::recognising(&Expectation::default());
    stream.feed(&bytes);
    let application = stream.application();
    let reading = stream.finish();
    let named = recognise::by_name(name).unwrap();
    match application {
        Some(application) => {
            assert_eq!(application, named.name(), "{name} is recognised as its own application");
            reading
        }
        None => hpc_bench::parse(&named, &bytes, &Expectation::default()),
    }
}

#[test]
fn every_sample_gives_its_expected_answer() {
    let mut compared = 0;
    for (name, answer) in expected() {
        if name.starts_with("pc2_") || name.starts_with("pc3_") {
            continue;
        }
        let reading = read(&name);
        let wrong = differences(&answer, &reading);
        assert!(wrong.is_empty(), "{name}: {wrong:?}\n{reading:#?}");
        compared += 1;
    }
    assert_eq!(compared, 38);
}

#[test]
fn the_samples_are_those_that_were_given() {
    let given = samples().join("../../../../../shared/samples");
    if !given.exists() {
        return;
    }
    for entry in fs::read_dir(samples()).unwrap() {
        let name = entry.unwrap().file_name();
        let (ours, theirs) = (fs::read(samples().join(&name)), fs::read(given.join(&name)));
        assert!(ours.unwrap() == theirs.unwrap(), "{name:?} differs from the one that was given");
    }
}

/// Keys of the answer that the reading does not bear out.
fn differences(answer: &Value, reading: &Reading) -> Vec<String> {
    let entries = answer.as_object().unwrap().iter();
    let wrong =
        entries.filter(|(key, value)| key.as_str() != "note" && !agrees(key, value, reading));
    wrong.map(|(key, value)| format!("{key}: {value}")).collect()
}

fn agrees(key: &str, value: &Value, reading: &Reading) -> bool {
    match (key, reading) {
        ("status", _) => agrees_in_status(value, reading),
        ("rows", Err(_)) => value == 0,
        ("reason", Err(error)) => error.to_string().contains(value.as_str().unwrap()),
        ("iterations", Err(error)) => {
            error.progress.map(|progress| progress.done) == value.as_u64()
        }
        ("requested_iterations", Err(error)) => {
            error.progress.and_then(|progress| progress.asked) == value.as_u64()
        }
        ("tables", Ok(parsed)) => agrees_in_tables(value, parsed),
        (_, Ok(parsed)) => {
            let by_table =
                parsed.tables.first().and_then(|table| of_table(key, value, table, parsed));
            by_table.or_else(|| of_metrics(key, value, parsed)).unwrap_or(false)
        }
        _ => false,
    }
}

fn agrees_in_status(value: &Value, reading: &Reading) -> bool {
    let has_warning = reading.as_ref().is_ok_and(|parsed| !parsed.warnings.is_empty());
    match (value.as_str().unwrap(), status(reading, None)) {
        ("ok-with-warning", Status::Ok) => has_warning,
        ("ok-or-explicit-error", Status::Ok | Status::Failed) => true,
        (expected, status) => expected == status.name(),
    }
}

fn agrees_in_tables(value: &Value, parsed: &Parsed) -> bool {
    let answers = value.as_array().unwrap();
    answers.len() == parsed.tables.len()
        && answers.iter().zip(&parsed.tables).all(|(answer, table)| {
            let entries = answer.as_object().unwrap().iter();
            entries
                .into_iter()
                .all(|(key, value)| of_table(key, value, table, parsed) == Some(true))
        })
}

/// Compares a key that speaks of a table; `None` if it does not.
fn of_table(key: &str, value: &Value, table: &Table, parsed: &Parsed) -> Option<bool> {
    let attribute =
        |name: &str, text: &str| table.attributes.get(name).is_some_and(|has| has == text);
    let number = value.as_u64();
    let rows = u64::try_from(table.rows.len()).ok();
    let first = table.columns.first()?;
    Some(match key {
        "benchmark" => table.benchmark.as_deref() == value.as_str(),
        "version" => table.version.as_deref() == value.as_str(),
        "rows" | "rows_safe" => rows == number,
        "unit" => value.as_str() == Some(&*first.unit),
        "better" => better(first.better) == value.as_str(),
        "columns" => columns(value, table),
        "at" => value.as_object()?.iter().all(|(key, value)| at(key, value, table)),
        "datatype" | "window_creation" | "synchronization" => attribute(key, value.as_str()?),
        "pairs" => attribute("pairs", &value.to_string()),
        "window" => attribute("window_size", &value.to_string()),
        "provider" => parsed.evidence.between_hosts().map(|(name, _)| name).eq([value.as_str()?]),
        "validation" => value == "pass" && table.validation == Some(hpc_bench::Validation::Passed),
        "size" => value.is_null() && !table.sized,
        "value" => number_at(table, None, &first.name) == value.as_f64(),
        "complete" => value == false && parsed.complete == hpc_bench::Complete::No,
        "damaged" => {
            sizes(value)
                == table.damaged.iter().filter_map(|damage| damage.size).collect::<Vec<_>>()
        }
        "attempts" => Some(u64::from(table.attempts)) == number,
        "rows_numeric" => rows.zip(number).is_some_and(|(rows, numeric)| {
            rows == numeric + u64::try_from(table.not_numeric().len()).unwrap()
        }),
        "not_numeric" => sizes(value) == table.not_numeric(),
        "max" => hpc_bench::osu::primary(table).map(|metric| metric.value) == value.as_f64(),
        _ => return None,
    })
}

fn columns(value: &Value, table: &Table) -> bool {
    let names: Vec<_> =
        table.columns.iter().map(|column| Value::from(column.name.as_str())).collect();
    value
        .as_array()
        .map_or(value.as_u64() == u64::try_from(names.len()).ok(), |expected| *expected == names)
}

fn at(key: &str, value: &Value, table: &Table) -> bool {
    match (key.parse::<u64>(), value.as_object()) {
        (Ok(size), None) => number_at(table, Some(size), &table.columns[0].name) == value.as_f64(),
        (Ok(size), Some(cells)) => cells
            .iter()
            .all(|(column, value)| number_at(table, Some(size), column) == value.as_f64()),
        (Err(_), _) => number_at(table, None, key) == value.as_f64(),
    }
}

fn number_at(table: &Table, size: Option<u64>, column: &str) -> Option<f64> {
    table.at(size, column)
}

fn sizes(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().filter_map(Value::as_u64).collect()
}

fn better(better: Option<Better>) -> Option<&'static str> {
    better.map(|better| match better {
        Better::Lower => "lower",
        Better::Higher => "higher",
    })
}

/// Compares a key that is the name of a metric.
fn of_metrics(key: &str, value: &Value, parsed: &Parsed) -> Option<bool> {
    match key {
        "better" => {
            let directions = value.as_object()?.iter();
            let agrees = |name: &str, way: &Value| {
                better(parsed.metric(name)?.better).map(|better| way == better)
            };
            Some(directions.into_iter().all(|(name, way)| agrees(name, way) == Some(true)))
        }
        "clat_mean_us" => {
            let mut of_name =
                parsed.metrics.iter().filter(|metric| metric.name.ends_with("_clat_mean_us"));
            Some(
                of_name.next().is_some()
                    && of_name.all(|metric| Some(metric.value) == value.as_f64()),
            )
        }
        "read" => Some(!parsed.metrics.iter().any(|metric| metric.name.starts_with("read_"))),
        name => parsed.metric(name).map(|metric| Some(metric.value) == value.as_f64()),
    }
}
