//! What holds for every log: a cut one is never complete, noise changes no number, and no bytes whatever bring a reader down.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::fs;
use std::path::{Path, PathBuf};

use hpc_bench::command::{Command, Declaration};
use hpc_bench::{Application, Complete, Expectation, ParseError, Parsed, Stream};
use proptest::prelude::*;
use serde_json::{Map, Value};

type Reading = Result<Parsed, ParseError>;

/// A log that is read without damage.
struct Good {
    name: String,
    application: Application,
    bytes: Vec<u8>,
}

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs")
}

fn noise() -> Vec<String> {
    let text = fs::read_to_string(logs().join("../noise.txt")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn good_logs() -> Vec<Good> {
    let text = fs::read_to_string(logs().join("EXPECTED.json")).unwrap();
    let answers: Map<String, Value> = serde_json::from_str(&text).unwrap();
    let good = answers.iter().filter(|(_, answer)| answer["status"] == "ok");
    good.map(|(name, answer)| Good {
        name: name.clone(),
        application: application(answer),
        bytes: fs::read(logs().join(name)).unwrap(),
    })
    .collect()
}

fn application(answer: &Value) -> Application {
    match answer["declaration"].as_str() {
        Some(path) => {
            let text = fs::read_to_string(logs().join(path)).unwrap();
            let declaration: Declaration = serde_json::from_str(&text).unwrap();
            Application::Command(Command::new(declaration).unwrap())
        }
        None => Application::from_name(answer["application"].as_str().unwrap()).unwrap(),
    }
}

fn every_application() -> Vec<Application> {
    let mut all: Vec<Application> = Vec::new();
    for good in good_logs() {
        if !all.contains(&good.application) {
            all.push(good.application);
        }
    }
    all
}

fn read(application: &Application, bytes: &[u8]) -> Reading {
    hpc_bench::parse(application, bytes, &Expectation::default())
}

/// Every number of a reading, with what tells it apart, but not its line.
fn numbers(reading: &Reading) -> Vec<String> {
    let Ok(parsed) = reading else { return vec!["refused".to_owned()] };
    let metrics = parsed.metrics.iter().map(|metric| {
        // Where a name is there twice, its line is what tells it apart.
        let labels =
            metric.labels.iter().filter(|(name, _)| !matches!(*name, "line" | "run" | "table"));
        format!("{} {:?} {}", metric.name, labels.collect::<Vec<_>>(), metric.value)
    });
    let rows = parsed.tables.iter().flat_map(|table| {
        table.rows.iter().map(move |row| {
            format!("{} {:?} {:?} {:?}", table.title, table.attributes, row.size, row.cells)
        })
    });
    metrics.chain(rows).collect()
}

#[test]
fn a_log_cut_at_any_byte_is_complete_only_if_no_number_is_lost() {
    // Two whole logs in one file: cut between them, the first is a whole log.
    let single = good_logs().into_iter().filter(|good| !good.name.contains("two_jobs"));
    for Good { name, application, bytes } in single {
        let whole = numbers(&read(&application, &bytes));
        let mut stream = Stream::new(&application, &Expectation::default());
        for (length, byte) in bytes.iter().enumerate() {
            stream.feed(&[*byte]);
            if !is_looked_at(&bytes, length + 1) {
                continue;
            }
            let cut = stream.clone().finish();
            let is_complete = cut.as_ref().is_ok_and(|parsed| parsed.complete == Complete::Yes);
            assert!(
                !is_complete || numbers(&cut) == whole,
                "{name} cut after {length} bytes: {cut:#?}"
            );
        }
    }
}

/// Every cut of a short log; of a long one those around line ends and in its last part, unless all are asked for.
fn is_looked_at(bytes: &[u8], length: usize) -> bool {
    let around =
        bytes.get(length.saturating_sub(2)..(length + 2).min(bytes.len())).unwrap_or_default();
    bytes.len() < 2500
        || length + 600 > bytes.len()
        || around.contains(&b'\n') && length.is_multiple_of(3)
        || is_full()
}

fn is_full() -> bool {
    std::env::var_os("HPCOPS_TEST_FULL").is_some()
}

/// Every line of noise at every position of a short log; of a long one a part, unless all of it is asked for.
fn stride(lines: usize) -> usize {
    if is_full() { 1 } else { lines / 8 + 1 }
}

#[test]
fn a_line_of_noise_anywhere_changes_no_number() {
    let noise = noise();
    for Good { name, application, bytes } in good_logs() {
        let whole = numbers(&read(&application, &bytes));
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let mut before = Stream::new(&application, &Expectation::default());
        let stride = stride(lines.len());
        for (position, line) in lines.iter().enumerate() {
            for noise in noise.iter().skip(position % stride).step_by(stride) {
                let mut stream = before.clone();
                stream.feed(noise.as_bytes());
                stream.feed(b"\n");
                lines.iter().skip(position).for_each(|line| stream.feed(line));
                let got = numbers(&stream.finish());
                assert_eq!(got, whole, "{name}: '{noise}' before line {}", position + 1);
            }
            before.feed(line);
        }
    }
}

#[test]
fn two_logs_in_a_row_never_give_a_number_that_is_in_neither() {
    let good = good_logs();
    for one in &good {
        for other in good.iter().filter(|other| other.application == one.application) {
            let known = [
                numbers(&read(&one.application, &one.bytes)),
                numbers(&read(&one.application, &other.bytes)),
            ]
            .concat();
            let both =
                read(&one.application, &[one.bytes.as_slice(), b"\n", &other.bytes].concat());
            let made_up: Vec<_> = numbers(&both)
                .into_iter()
                .filter(|number| !known.contains(number) && !is_count(number))
                .collect();
            assert!(made_up.is_empty(), "{} then {}: {made_up:?}", one.name, other.name);
        }
    }
}

/// What speaks of the log and not of a measurement.
fn is_count(number: &str) -> bool {
    number == "refused" || number.starts_with("jobs ")
}

/// Changes that happen to logs: bytes flipped, lines lost, doubled, moved, cut.
fn changed(bytes: &[u8], changes: &[(u8, usize, usize)]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    for (kind, at, to) in changes {
        let (at, to) = (at % lines.len().max(1), to % lines.len().max(1));
        let Some(line) = lines.get(at).cloned() else { continue };
        match kind % 5 {
            0 => drop(lines.remove(at)),
            1 => lines.insert(to, line),
            2 => lines.swap(at, to),
            3 => lines
                .iter_mut()
                .skip(at)
                .take(1)
                .for_each(|line| line.truncate(to % (line.len() + 1))),
            _ => lines
                .iter_mut()
                .skip(at)
                .take(1)
                .flat_map(|line| line.iter_mut().skip(to).take(1))
                .for_each(|byte| *byte ^= 0x15),
        }
    }
    lines.concat()
}

fn sane(reading: &Reading) -> bool {
    reading.as_ref().map_or_else(
        |error| !error.to_string().is_empty(),
        |parsed| parsed.metrics.iter().all(|metric| metric.value.is_finite()),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused_by_every_reader(bytes in proptest::collection::vec(any::<u8>(), 0..400), piece in 1usize..50) {
        for application in every_application() {
            let whole = read(&application, &bytes);
            let mut stream = Stream::new(&application, &Expectation::default());
            bytes.chunks(piece).for_each(|piece| stream.feed(piece));
            prop_assert!(sane(&whole));
            prop_assert_eq!(stream.finish(), whole, "pieces change nothing");
        }
    }

    #[test]
    fn damaged_logs_are_read_or_refused(index in any::<prop::sample::Index>(), changes in proptest::collection::vec(any::<(u8, usize, usize)>(), 1..8)) {
        let good = good_logs();
        let good = index.get(&good);
        prop_assert!(sane(&read(&good.application, &changed(&good.bytes, &changes))), "{}", good.name);
    }
}
