//! From an output to a judgement: parsed completely, held against what was asked, or refused with
//! the reason. The judgement carries the `ConfigMap` that will prove it.

use std::collections::BTreeMap;

use hpc_bench::osu::{Launch, primary};
use hpc_bench::{Application, Bounds, Cell, Metric, Parsed, Table, Verdict, judge, parse, text};
use hpc_crds::{AttemptState, AttemptStatus, Reason};
use serde_json::{Value, json};

use super::View;
use super::attempts::Attempt;
use super::observed::{Phase, Poll};
use super::step::Results;

/// Lines of a log that are kept when its attempt gave no number.
const TAIL_LINES: usize = 50;
/// Bytes of those lines at most; a `ConfigMap` holds one MiB.
const TAIL_BYTES: usize = 65_536;
/// Physics: no fabric of today is faster (3,200 Gbit/s), none nearer (0.3 us between hosts).
pub(super) const BOUNDS: Bounds =
    Bounds { max_mb_per_s: Some(400_000.0), min_latency_us: Some(0.3) };

/// What an ended attempt is worth.
pub(super) struct Judgement {
    state: AttemptState,
    reason: String,
    message: String,
    value: String,
    /// Proof of it, to be stored before the status says so.
    pub results: Results,
}

impl Judgement {
    /// Writes it into the attempt's status.
    pub fn conclude(&self, status: &mut AttemptStatus) {
        status.state = self.state;
        status.reason.clone_from(&self.reason);
        status.message.clone_from(&self.message);
        status.value.clone_from(&self.value);
    }
}

/// What was read and what it is worth, before it is put into a record.
struct Reading {
    state: AttemptState,
    reason: String,
    message: String,
    parsed: Option<Parsed>,
    program: &'static str,
}

/// Judges the whole output of an ended attempt.
pub(super) fn evaluate(
    view: &View<'_>,
    attempt: &Attempt,
    poll: &Poll,
    output: &[u8],
) -> Option<Judgement> {
    let reading = Reading::new(&attempt.launch(view)?, poll, output)?;
    let tail = (!reading.is_valid()).then(|| tail(output));
    let record = json!({
        "provenance": provenance(view, attempt, poll),
        "state": reading.state.to_string(),
        "reason": reading.reason,
        "message": reading.message,
        "metric": reading.metric().as_ref().map(of_metric),
        "table": reading.table().map(of_table),
        "evidence": reading.parsed.as_ref().map(of_evidence),
    });
    Some(Judgement {
        value: reading.value(),
        results: results(view, attempt, &record, tail),
        state: reading.state,
        reason: reading.reason,
        message: cut(&reading.message),
    })
}

impl Reading {
    fn new(launch: &Launch, poll: &Poll, output: &[u8]) -> Option<Self> {
        let expected = launch.expectation(BOUNDS).ok()?;
        let parsed = parse(&Application::Osu, output, &expected);
        let code = poll.exit.as_ref().map(|exit| exit.code);
        let (state, reason, message) = match (poll.phase, code, &parsed) {
            (Phase::Lost, ..) => {
                failed(Reason::JobLost, "the scheduler lost the job before it wrote its exit file")
            }
            (_, Some(0), Ok(parsed)) => verdict(judge(parsed, &expected)),
            (_, Some(0), Err(error)) => failed(Reason::IncompleteLog, &error.to_string()),
            (_, Some(code), _) => {
                let words = last_words(output);
                failed(Reason::ExitCode, &format!("the job ended with exit code {code}{words}"))
            }
            (_, None, _) => failed(Reason::ExitCode, "the job ended without an exit code"),
        };
        let program = launch.benchmark.program();
        Some(Self { state, reason, message, parsed: parsed.ok(), program })
    }

    fn is_valid(&self) -> bool {
        self.state == AttemptState::Succeeded
    }

    /// The table of a valid attempt; one that is not has no number to show.
    fn table(&self) -> Option<&Table> {
        self.parsed.as_ref().filter(|_| self.is_valid())?.table(self.program)
    }

    fn metric(&self) -> Option<Metric> {
        self.table().and_then(primary)
    }

    fn value(&self) -> String {
        self.metric().and_then(|metric| text::decimal(metric.value)).unwrap_or_default()
    }
}

/// What a failed job said: why our script refused to begin, else its last line.
fn last_words(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines = || text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    let refusal = lines().find_map(|line| line.strip_prefix("hpcops: refused: "));
    let last = || lines().find(|line| !line.starts_with("hpcops: "));
    let words = refusal.or_else(last).unwrap_or_default();
    let plain: String = words.chars().filter(|letter| !letter.is_control()).take(160).collect();
    if plain.is_empty() { plain } else { format!(": {plain}") }
}

fn failed(reason: Reason, message: &str) -> (AttemptState, String, String) {
    (AttemptState::Failed, reason.to_string(), message.to_owned())
}

fn verdict(verdict: Verdict) -> (AttemptState, String, String) {
    match verdict {
        Verdict::Valid | Verdict::NotApplicable => {
            (AttemptState::Succeeded, String::new(), String::new())
        }
        Verdict::Invalid { reason, message } => {
            (AttemptState::Invalid, reason.to_string(), message)
        }
    }
}

/// Messages in status are bounded at 256 bytes.
pub(super) fn cut(message: &str) -> String {
    let end = (0..=message.len().min(256)).rev().find(|&at| message.is_char_boundary(at));
    message.get(..end.unwrap_or_default()).unwrap_or_default().to_owned()
}

fn provenance(view: &View<'_>, attempt: &Attempt, poll: &Poll) -> Value {
    let cluster = view.observed.cluster.clone().unwrap_or_default();
    let exit = poll.exit.clone().unwrap_or_default();
    without_unknown(json!({
        "run": view.desired.owner.full_name(),
        "runUid": view.desired.owner.uid,
        "attempt": attempt.id,
        "cell": attempt.cell.name,
        "repeat": attempt.repeat,
        "nodes": attempt.cell.nodes,
        "benchmark": attempt.cell.benchmark.to_string(),
        "jobId": job_id(view, attempt, poll),
        "exitCode": poll.exit.as_ref().map(|exit| exit.code),
        "startedAt": exit.started_at,
        "finishedAt": exit.finished_at,
        "hosts": exit.hosts,
        "clusterUid": cluster.uid,
        "imageId": cluster.image_id,
        "parser": env!("CARGO_PKG_VERSION"),
        "simulated": !view.desired.settings.simulated_fabric.is_empty(),
    }))
}

/// The scheduler's number of the job: as polled, as the job wrote it itself, or as it was told when it
/// was submitted.
fn job_id(view: &View<'_>, attempt: &Attempt, poll: &Poll) -> Option<String> {
    let written = poll.exit.as_ref().map(|exit| &exit.job_id);
    let stored = view.observed.object.status.attempts.iter();
    let told = stored.filter(|told| told.id == attempt.id).map(|told| &told.job_id);
    let mut known = poll.job_id.iter().chain(written).chain(told);
    known.find(|id| !id.is_empty()).cloned()
}

/// What is not known is left out.
fn without_unknown(mut record: Value) -> Value {
    if let Some(fields) = record.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    record
}

fn of_metric(metric: &Metric) -> Value {
    json!({
        "name": metric.name,
        "value": text::decimal(metric.value),
        "unit": metric.unit,
        "labels": metric.labels,
    })
}

/// Numbers as decimal strings, so that what the program printed is what is read.
fn of_table(table: &Table) -> Value {
    let columns: Vec<_> = table
        .columns
        .iter()
        .map(|column| json!({"name": column.name, "unit": column.unit}))
        .collect();
    let rows: Vec<_> = table
        .rows
        .iter()
        .map(|row| {
            let cells: Vec<_> = row.cells.iter().map(|cell| of_cell(*cell)).collect();
            json!({"size": row.size, "values": cells})
        })
        .collect();
    json!({"title": table.title, "version": table.version, "columns": columns, "rows": rows})
}

fn of_cell(cell: Cell) -> Option<String> {
    cell.number().and_then(text::decimal)
}

fn of_evidence(parsed: &Parsed) -> Value {
    let evidence = &parsed.evidence;
    without_unknown(json!({
        "mpi": evidence.mpi,
        "libfabric": evidence.libfabric,
        "providers": evidence.providers.keys().collect::<Vec<_>>(),
        "ranksPerHost": evidence.hosts(),
    }))
}

/// The last lines of an output, as text, bounded in lines and bytes.
fn tail(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<_> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default().join("\n");
    let start = last.len().saturating_sub(TAIL_BYTES);
    let start = (start..=last.len()).find(|&at| last.is_char_boundary(at)).unwrap_or_default();
    last.get(start..).unwrap_or_default().to_owned()
}

fn results(view: &View<'_>, attempt: &Attempt, record: &Value, tail: Option<String>) -> Results {
    let mut data = BTreeMap::from([("attempt.json".to_owned(), format!("{record:#}\n"))]);
    data.extend(tail.map(|tail| ("log-tail.txt".to_owned(), tail)));
    let sha256 = crate::names::sha256(&data);
    let short = sha256.get(..12).unwrap_or_default();
    let name = format!("{}-{short}", view.desired.owner.name);
    Results { name, sha256, attempt: attempt.id.clone(), data }
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn a_failed_job_is_told_with_why_it_was_refused_or_its_last_line() {
        for (output, words) in [
            ("", ""),
            ("hpcops: mpirun-end epoch-ms=1 code=1\n", ""),
            ("a\nSegmentation fault\n\nhpcops: mpirun-end code=139\n", ": Segmentation fault"),
            ("hpcops: refused: no mpirun at /x\nsrun: error\n", ": no mpirun at /x"),
            ("\u{1b}[31mred\n", ": [31mred"),
        ] {
            assert_eq!(last_words(output.as_bytes()), words);
        }
    }
}
