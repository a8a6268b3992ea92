//! One JSON document of fio, from the events of the JSON reader to what its jobs measured.
//!
//! Only what becomes a metric is kept: a document with histograms (`json+`) may be hundreds of megabytes.

use std::collections::BTreeMap;

use crate::json::{Event, unescape};
use crate::number::finite;

/// The most jobs of one document.
const MAX_JOBS: usize = 4096;
/// What fio writes for an end it does not know, also after it.
const UNKNOWN_ETA: u64 = 2_147_483_647;
/// Percentiles that become metrics.
const PERCENTILES: [&str; 5] = ["50.000000", "90.000000", "99.000000", "99.900000", "99.990000"];

/// What a document says.
#[derive(Debug, Default, Clone)]
pub(super) struct Document {
    /// As printed, e.g. `fio-3.36`.
    pub version: Option<String>,
    /// Jobs, or clients of a distributed run.
    pub jobs: Vec<Job>,
    /// 1-based line of its `{`.
    pub line: u64,
    /// Whether there were more jobs than are kept.
    pub is_too_large: bool,
    /// Lines on which a value was given a second time, and differently.
    pub contradictions: Vec<u64>,
    /// Lines on which something stands in the place of a number.
    pub strange: Vec<u64>,
    path: Vec<Place>,
    next: Place,
}

/// One entry of `jobs` or `client_stats`.
#[derive(Debug, Default, Clone)]
pub(super) struct Job {
    /// `jobname`.
    pub name: String,
    /// `hostname` of a client.
    pub host: Option<String>,
    /// `groupid`: jobs of one group ran at the same time.
    pub group: u64,
    /// errno, 0 for none.
    pub error: u64,
    /// Seconds fio expected it to go on for when it wrote this; 0, or the largest integer, in what it writes at the end.
    pub eta: u64,
    /// `steadystate.attained`.
    pub is_steady: Option<bool>,
    /// What each direction measured: a value and its line.
    pub values: BTreeMap<(Direction, Field), (f64, u64)>,
    /// 1-based line of its `{`.
    pub line: u64,
}

/// Which way bytes were moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    Read,
    Write,
    Trim,
    /// All of them in one, with `unified_rw_reporting`.
    Mixed,
}

/// Which part of an operation was timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Completion.
    Clat,
    /// All of it.
    Lat,
    /// Submission.
    Slat,
}

/// A number of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    /// Bytes moved; 0 means the direction was not used.
    IoBytes,
    /// KiB/s.
    Bw,
    /// B/s.
    BwBytes,
    /// 1/s.
    Iops,
    /// Milliseconds.
    Runtime,
    /// Of one kind of latency.
    Latency {
        /// Of which part.
        kind: Kind,
        /// Whether it is in nanoseconds (3.x) or microseconds (2.x).
        is_nanos: bool,
        /// Which statistic.
        of: Statistic,
    },
}

/// A statistic of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Statistic {
    Min,
    Mean,
    Max,
    Stddev,
    /// An index into the percentiles that are kept.
    Percentile(usize),
}

/// What stands at a place of the document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Other,
    Root,
    Version,
    Jobs,
    Job,
    JobName,
    Host,
    Group,
    Error,
    Eta,
    SteadyState,
    Attained,
    Direction(Direction),
    Field(Direction, Plain),
    Latency(Direction, Kind, bool),
    Percentiles(Direction, Kind, bool),
    Statistic(Direction, Kind, bool, Statistic),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plain {
    IoBytes,
    Bw,
    BwBytes,
    Iops,
    Runtime,
}

impl Document {
    pub fn new(line: u64) -> Self {
        Self { line, next: Place::Root, ..Self::default() }
    }

    /// Whether it is fio's at all.
    pub fn is_fio(&self) -> bool {
        self.version.is_some() || !self.jobs.is_empty()
    }

    /// What kind of document it is: documents of one kind are states of one run.
    pub fn kind(&self) -> Vec<(&str, Option<&str>)> {
        self.jobs.iter().map(|job| (job.name.as_str(), job.host.as_deref())).collect()
    }

    /// Takes the next event.
    pub fn event(&mut self, event: Event<'_>, line: u64) {
        match event {
            Event::Open => self.open(line),
            Event::Close => {
                self.path.pop();
                self.next = self.element();
            }
            Event::Key(key) => self.next = self.place(key),
            Event::Text(text) => self.text(text),
            Event::Number(text) => self.number(text, line),
            Event::Word(_) => self.word(line),
            Event::End => self.next = self.element(),
        }
    }

    fn here(&self) -> Place {
        self.path.last().copied().unwrap_or_default()
    }

    /// What an element of the array that is open would be.
    fn element(&self) -> Place {
        if self.here() == Place::Jobs { Place::Job } else { Place::Other }
    }

    /// The place of the value that is read now.
    fn take_place(&mut self) -> Place {
        let element = self.element();
        std::mem::replace(&mut self.next, element)
    }

    fn open(&mut self, line: u64) {
        let place = self.next;
        self.path.push(place);
        self.next = self.element();
        if place == Place::Job {
            self.is_too_large |= self.jobs.len() >= MAX_JOBS;
            if !self.is_too_large {
                self.jobs.push(Job { line, ..Job::default() });
            }
        }
    }

    /// What stands under a key of the object that is open.
    fn place(&self, key: &str) -> Place {
        match (self.here(), key) {
            (Place::Root, "fio version") => Place::Version,
            (Place::Root, "jobs" | "client_stats") => Place::Jobs,
            (Place::Job, _) => job_place(key),
            (Place::SteadyState, "attained") => Place::Attained,
            (Place::Direction(direction), _) => direction_place(direction, key),
            (Place::Latency(direction, kind, is_nanos), _) => match statistic(key) {
                Some(of) => Place::Statistic(direction, kind, is_nanos, of),
                None if key == "percentile" => Place::Percentiles(direction, kind, is_nanos),
                None => Place::Other,
            },
            (Place::Percentiles(direction, kind, is_nanos), _) => {
                let index = PERCENTILES.iter().position(|percentile| *percentile == key);
                index.map_or(Place::Other, |index| {
                    Place::Statistic(direction, kind, is_nanos, Statistic::Percentile(index))
                })
            }
            _ => Place::Other,
        }
    }

    fn text(&mut self, raw: &str) {
        let place = self.take_place();
        let job = if self.is_too_large { None } else { self.jobs.last_mut() };
        match (place, job) {
            (Place::Version, _) => self.version = Some(unescape(raw).into_owned()),
            (Place::JobName, Some(job)) => job.name = unescape(raw).into_owned(),
            (Place::Host, Some(job)) => job.host = Some(unescape(raw).into_owned()),
            _ => {}
        }
    }

    fn number(&mut self, text: &str, line: u64) {
        let place = self.take_place();
        if place == Place::Other || self.is_too_large {
            return;
        }
        let Some(job) = self.jobs.last_mut() else { return };
        let Some(value) = finite(text) else { return self.strange.push(line) };
        if place == Place::Group {
            job.group = text.parse().unwrap_or_default();
        } else if place == Place::Error {
            job.error = text.parse().unwrap_or(1);
        } else if place == Place::Eta {
            job.eta = text.parse().unwrap_or_default();
        } else if place == Place::Attained {
            job.is_steady = Some(value > 0.0);
        } else if let Place::Field(direction, plain) = place {
            self.value(direction, plain.into(), value, line);
        } else if let Place::Statistic(direction, kind, is_nanos, of) = place {
            self.value(direction, Field::Latency { kind, is_nanos, of }, value, line);
        }
    }

    /// `nan` or `null` where a number belongs.
    fn word(&mut self, line: u64) {
        if matches!(self.take_place(), Place::Field(..) | Place::Statistic(..)) {
            self.strange.push(line);
        }
    }

    fn value(&mut self, direction: Direction, field: Field, value: f64, line: u64) {
        let Some(job) = self.jobs.last_mut() else { return };
        let first = job.values.entry((direction, field)).or_insert((value, line));
        if first.0.total_cmp(&value).is_ne() {
            self.contradictions.push(line);
        }
    }
}

impl Direction {
    /// As fio writes it, and as names begin.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Mixed => "mixed",
        }
    }
}

impl Kind {
    /// As names contain it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clat => "clat",
            Self::Lat => "lat",
            Self::Slat => "slat",
        }
    }
}

impl From<Plain> for Field {
    fn from(plain: Plain) -> Self {
        match plain {
            Plain::IoBytes => Self::IoBytes,
            Plain::Bw => Self::Bw,
            Plain::BwBytes => Self::BwBytes,
            Plain::Iops => Self::Iops,
            Plain::Runtime => Self::Runtime,
        }
    }
}

impl Job {
    /// Whether fio wrote this while the job was running.
    pub fn is_running(&self) -> bool {
        (1..UNKNOWN_ETA).contains(&self.eta)
    }
}

/// The percentile at an index, as a part of a name: `p99`, `p99.9`.
pub(super) fn percentile(index: usize) -> String {
    let text = PERCENTILES.get(index).copied().unwrap_or_default();
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn job_place(key: &str) -> Place {
    match key {
        "jobname" => Place::JobName,
        "hostname" => Place::Host,
        "groupid" => Place::Group,
        "error" => Place::Error,
        "eta" => Place::Eta,
        "steadystate" => Place::SteadyState,
        "read" => Place::Direction(Direction::Read),
        "write" => Place::Direction(Direction::Write),
        "trim" => Place::Direction(Direction::Trim),
        "mixed" => Place::Direction(Direction::Mixed),
        _ => Place::Other,
    }
}

fn direction_place(direction: Direction, key: &str) -> Place {
    match key {
        "io_bytes" => Place::Field(direction, Plain::IoBytes),
        "bw" => Place::Field(direction, Plain::Bw),
        "bw_bytes" => Place::Field(direction, Plain::BwBytes),
        "iops" => Place::Field(direction, Plain::Iops),
        "runtime" => Place::Field(direction, Plain::Runtime),
        "clat_ns" => Place::Latency(direction, Kind::Clat, true),
        "lat_ns" => Place::Latency(direction, Kind::Lat, true),
        "slat_ns" => Place::Latency(direction, Kind::Slat, true),
        "clat" => Place::Latency(direction, Kind::Clat, false),
        "lat" => Place::Latency(direction, Kind::Lat, false),
        "slat" => Place::Latency(direction, Kind::Slat, false),
        _ => Place::Other,
    }
}

fn statistic(key: &str) -> Option<Statistic> {
    match key {
        "min" => Some(Statistic::Min),
        "mean" => Some(Statistic::Mean),
        "max" => Some(Statistic::Max),
        "stddev" => Some(Statistic::Stddev),
        _ => None,
    }
}
