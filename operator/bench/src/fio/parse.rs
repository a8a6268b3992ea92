//! Reads fio's output: the last state of each run in it, with notices before, between and after.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::document::{Direction, Document, Field, Job, Statistic, percentile};
use crate::evidence::Evidence;
use crate::failure::{ParseError, Reason};
use crate::json::{self, Taken};
use crate::line::Line;
use crate::parsed::{Better, Complete, Metric, Noise, Parsed};

/// The entry that sums up the clients of a distributed run.
const ALL_CLIENTS: &str = "All clients";
/// Different runs one log may hold.
const MAX_RUNS: usize = 64;

/// Reads one log.
#[derive(Debug, Default, Clone)]
pub(crate) struct Reader {
    json: json::Reader,
    open: Option<Document>,
    done: Vec<(Document, u32)>,
    damaged: Option<u64>,
    error: Option<ParseError>,
    parsed: Parsed,
    noise: Noise,
}

impl Reader {
    /// Takes the next line; whether it was part of a document.
    pub(crate) fn line(&mut self, line: Line<'_>) -> bool {
        let number = line.number;
        let (open, done) = (&mut self.open, &mut self.done);
        let taken = self.json.line(line, |event| {
            let document = open.get_or_insert_with(|| Document::new(number));
            document.event(event, number);
            if event == json::Event::End
                && let Some(document) = open.take().filter(Document::is_fio)
            {
                keep(done, document);
            }
        });
        match taken {
            Taken::Json | Taken::Outside => {}
            Taken::Noise => self.noise.line(number, line.text, &mut self.parsed),
            Taken::Damage => self.damage(number),
        }
        self.bounds(number);
        taken == Taken::Json
    }

    /// A document that is damaged gives no number at all: nothing says what else of it is missing.
    fn damage(&mut self, line: u64) {
        self.json.reset();
        if self.open.take().is_some_and(|document| document.is_fio()) {
            self.damaged = Some(line);
        }
    }

    fn bounds(&mut self, line: u64) {
        let too_many_jobs = self.open.as_ref().is_some_and(|document| document.is_too_large);
        if self.error.is_none() && (too_many_jobs || self.done.len() > MAX_RUNS) {
            let detail = "more jobs or runs than one log may hold; use group_reporting";
            self.error = Some(ParseError::new(line, Reason::TooLarge, detail));
        }
    }

    /// Ends the log.
    pub(crate) fn finish(mut self, lines: u64, _evidence: &Evidence) -> Result<Parsed, ParseError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let is_cut = self.json.is_inside() || self.open.is_some();
        if self.done.is_empty() {
            return Err(match (is_cut, self.damaged) {
                (_, Some(line)) => {
                    ParseError::new(line, Reason::Malformed, "the JSON document is damaged here")
                }
                (true, None) => ParseError::new(
                    lines,
                    Reason::Incomplete,
                    "incomplete JSON: the document does not end",
                ),
                (false, None) => {
                    ParseError::new(lines, Reason::NotFound, "no JSON document of fio")
                }
            });
        }
        if is_cut || self.damaged.is_some() {
            let line = self.damaged.unwrap_or(lines);
            self.parsed.warn(line, "the last document is cut or damaged; an earlier one is given");
        }
        let is_whole = !is_cut && self.damaged.is_none();
        let mut parsed = self.parsed;
        self.noise.count(&mut parsed);
        let mut sound = true;
        for run in &self.done {
            sound &= report(run, &mut parsed);
        }
        if parsed.metrics.is_empty() {
            return Err(nothing(&self.done));
        }
        parsed.complete = if sound && is_whole { Complete::Yes } else { Complete::No };
        Ok(parsed)
    }
}

/// States of one run follow each other (`--status-interval`): the last one counts.
fn keep(done: &mut Vec<(Document, u32)>, document: Document) {
    match done.iter_mut().find(|(earlier, _)| earlier.kind() == document.kind()) {
        Some(run) => *run = (document, run.1 + 1),
        None => done.push((document, 1)),
    }
}

fn nothing(done: &[(Document, u32)]) -> ParseError {
    let failed = done.iter().flat_map(|(document, _)| &document.jobs).find(|job| job.error != 0);
    if let Some(job) = failed {
        let detail = format!("job '{}' ended with error {}", job.name, job.error);
        return ParseError::new(job.line, Reason::Fatal, detail);
    }
    let line = done.first().map_or(0, |(document, _)| document.line);
    ParseError::new(line, Reason::NoData, "no job moved a byte")
}

/// Turns a run into metrics; whether all of it can be trusted.
fn report((document, states): &(Document, u32), parsed: &mut Parsed) -> bool {
    if *states > 1 {
        parsed.warn(document.line, format!("{states} states of one run; the last one counts"));
    }
    for line in &document.contradictions {
        parsed.warn(*line, "a value is given twice, and differently; the first is kept");
    }
    for line in &document.strange {
        parsed.warn(*line, "something stands in the place of a number");
    }
    let mut sound = document.contradictions.is_empty() && document.strange.is_empty();
    if document.jobs.iter().any(Job::is_running) {
        sound = false;
        parsed.warn(document.line, "the jobs were still running: a state of --status-interval");
    }
    let mut totals = BTreeMap::new();
    for (job, labels) in document.jobs.iter().zip(labels(document)) {
        if job.error != 0 {
            sound = false;
            parsed.warn(
                job.line,
                format!("job '{}' ended with error {}: no numbers of it", job.name, job.error),
            );
            continue;
        }
        if job.is_steady == Some(false) {
            parsed.warn(job.line, format!("job '{}' did not reach its steady state", job.name));
        }
        of_job(job, &labels, parsed, &mut totals);
    }
    if sound {
        add_totals(document, &totals, parsed);
    }
    sound
}

/// Sums of a group of jobs that ran at the same time: rates add up, latencies do not.
type Totals = BTreeMap<(u64, Direction, &'static str), (f64, u64)>;

fn of_job(job: &Job, labels: &[(&'static str, String)], parsed: &mut Parsed, totals: &mut Totals) {
    for direction in [Direction::Read, Direction::Write, Direction::Trim, Direction::Mixed] {
        let value = |field: Field| job.values.get(&(direction, field)).copied();
        if value(Field::IoBytes).is_none_or(|(bytes, _)| bytes <= 0.0) {
            continue;
        }
        check_bandwidth(job, direction, parsed);
        for ((of, field), (value, line)) in &job.values {
            let is_wanted = *of == direction && is_measured(job, direction, field);
            let Some(shown) = shown(field).filter(|_| is_wanted) else { continue };
            if shown.adds_up && job.name != ALL_CLIENTS {
                let total =
                    totals.entry((job.group, direction, shown.unit)).or_insert((0.0, *line));
                total.0 += value / shown.divisor;
            }
            parsed.metrics.push(shown.metric(direction, labels.to_vec(), *value, *line));
        }
    }
}

/// Two spellings of one number that disagree are worth a word.
fn check_bandwidth(job: &Job, direction: Direction, parsed: &mut Parsed) {
    let value = |field| job.values.get(&(direction, field)).copied();
    let (Some((bw, line)), Some((bytes, _))) = (value(Field::Bw), value(Field::BwBytes)) else {
        return;
    };
    if (bytes / 1024.0 - bw).abs() > 1.0 + bw * 0.01 {
        parsed.warn(line, format!("bw ({bw} KiB/s) and bw_bytes ({bytes} B/s) disagree"));
    }
}

/// A part that took no time at all was not timed: nothing is submitted by an engine that waits.
fn is_measured(job: &Job, direction: Direction, field: &Field) -> bool {
    let Field::Latency { kind, is_nanos, .. } = *field else { return true };
    let longest = Field::Latency { kind, is_nanos, of: Statistic::Max };
    job.values.get(&(direction, longest)).is_none_or(|(most, _)| *most > 0.0)
}

/// What tells each job apart: its name, its client, its group, and its number where jobs share all of that.
fn labels(document: &Document) -> Vec<Vec<(&'static str, String)>> {
    let groups: BTreeSet<u64> = document.jobs.iter().map(|job| job.group).collect();
    let mut labels: Vec<Vec<_>> = Vec::with_capacity(document.jobs.len());
    for job in &document.jobs {
        let mut of_job = vec![("job", job.name.clone())];
        // The entry that sums up all clients carries the name of one of them.
        let host = job.host.clone().filter(|_| job.name != ALL_CLIENTS);
        of_job.extend(host.map(|host| ("host", host)));
        if groups.len() > 1 {
            of_job.push(("group", job.group.to_string()));
        }
        labels.push(of_job);
    }
    let mut seen: BTreeMap<Vec<(&str, String)>, u32> = BTreeMap::new();
    for of_job in &labels {
        *seen.entry(of_job.clone()).or_default() += 1;
    }
    let mut numbers = BTreeMap::new();
    for of_job in labels.iter_mut().filter(|of_job| seen.get(*of_job).is_some_and(|jobs| *jobs > 1))
    {
        let number: &mut u32 = numbers.entry(of_job.clone()).or_default();
        of_job.push(("number", number.to_string()));
        *number += 1;
    }
    labels
}

/// A total is given where it says more than the jobs: several of them, all in one group, no client among them.
fn add_totals(document: &Document, totals: &Totals, parsed: &mut Parsed) {
    let groups: Vec<_> = document.jobs.iter().map(|job| job.group).collect();
    let is_one_group = groups.windows(2).all(|pair| pair.first() == pair.last());
    if document.jobs.len() < 2 || document.jobs.iter().any(|job| job.host.is_some()) {
        return;
    }
    for ((group, direction, unit), (value, line)) in totals {
        let shown = if *unit == "KiB/s" { BW } else { IOPS };
        let labels = if is_one_group { Vec::new() } else { vec![("group", group.to_string())] };
        parsed
            .metrics
            .push(Shown { divisor: 1.0, ..shown }.metric(*direction, labels, *value, *line));
    }
}

/// How a field is shown.
struct Shown {
    name: Cow<'static, str>,
    unit: &'static str,
    divisor: f64,
    better: Option<Better>,
    adds_up: bool,
}

const BW: Shown = Shown {
    name: Cow::Borrowed("bw_kib"),
    unit: "KiB/s",
    divisor: 1.0,
    better: Some(Better::Higher),
    adds_up: true,
};
const IOPS: Shown = Shown {
    name: Cow::Borrowed("iops"),
    unit: "1/s",
    divisor: 1.0,
    better: Some(Better::Higher),
    adds_up: true,
};

fn shown(field: &Field) -> Option<Shown> {
    match field {
        Field::Bw => Some(BW),
        Field::Iops => Some(IOPS),
        Field::IoBytes | Field::BwBytes => None,
        Field::Runtime => Some(Shown {
            name: "runtime_s".into(),
            unit: "s",
            divisor: 1000.0,
            better: None,
            adds_up: false,
        }),
        Field::Latency { kind, is_nanos, of } => Some(Shown {
            name: format!("{}_{}_us", kind.name(), statistic(*of)).into(),
            unit: "us",
            divisor: if *is_nanos { 1000.0 } else { 1.0 },
            better: Some(Better::Lower),
            adds_up: false,
        }),
    }
}

fn statistic(of: Statistic) -> String {
    match of {
        Statistic::Min => "min".to_owned(),
        Statistic::Mean => "mean".to_owned(),
        Statistic::Max => "max".to_owned(),
        Statistic::Stddev => "stddev".to_owned(),
        Statistic::Percentile(index) => percentile(index),
    }
}

impl Shown {
    fn metric(
        self,
        direction: Direction,
        labels: Vec<(&'static str, String)>,
        value: f64,
        line: u64,
    ) -> Metric {
        Metric {
            name: format!("{}_{}", direction.name(), self.name),
            labels,
            value: value / self.divisor,
            unit: self.unit.into(),
            better: self.better,
            line,
        }
    }
}
