//! Reads IOR's output in whatever format it comes.

use std::sync::LazyLock;

use regex::Regex;

use super::json;
use super::report::report;
use super::run::{MAX_ROWS, Run};
use super::text::{self, Taken};
use crate::evidence::Evidence;
use crate::facts::shortened;
use crate::failure::{ParseError, Reason};
use crate::line::{Line, pattern};
use crate::parsed::{Complete, Noise, Parsed};

/// Runs one log may hold.
const MAX_RUNS: usize = 200;

static FATAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\s*ior ERROR|incorrect data on (?:write|read)|MPI_ABORT was invoked")
});
static NOTICE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:ior )?WARNING: |^\d+: "));

/// Reads one log.
#[derive(Debug, Default, Clone)]
pub(crate) struct Reader {
    runs: Vec<Run>,
    table: text::Open,
    record: json::Open,
    parsed: Parsed,
    fatal: Option<(u64, String)>,
    error: Option<ParseError>,
    noise: Noise,
}

impl Reader {
    /// Takes the next line.
    pub(crate) fn line(&mut self, line: Line<'_>) {
        if self.error.is_some() || !line.whole {
            return;
        }
        if self.fatal.is_none() && FATAL.is_match(line.text) {
            self.fatal = Some((line.number, shortened(line.text)));
        }
        if NOTICE.is_match(line.text) {
            return self.noise.line(line.number, line.text, &mut self.parsed);
        }
        // Some versions print their title before the document; CSV has nothing else to begin with.
        let is_untouched = self.runs.last().is_some_and(|run| run.tests.is_empty());
        let is_start = json::is_start(line.text) || text::is_csv_header(line.text);
        if is_start && !is_untouched {
            self.begin(line.number);
        }
        let Some(run) = self.runs.last_mut() else { return self.first(line) };
        if json::read(line, run, &mut self.record) {
            return self.bounds(line.number);
        }
        let taken = text::read(line, run, &mut self.table);
        self.took(taken, line);
    }

    /// Without a banner, a table's header begins a run: CSV has none.
    fn first(&mut self, line: Line<'_>) {
        let mut run = Run { line: line.number, ..Run::default() };
        let taken = text::read(line, &mut run, &mut self.table);
        if taken != Taken::Other {
            self.runs.push(run);
            self.took(taken, line);
        }
    }

    fn took(&mut self, taken: Taken, line: Line<'_>) {
        match taken {
            Taken::Banner(version) => {
                let is_empty = self.runs.last().is_some_and(|run| run.line == line.number);
                if !is_empty {
                    self.begin(line.number);
                }
                if let Some(run) = self.runs.last_mut() {
                    run.version = Some(version);
                }
            }
            Taken::Unknown(label) => {
                let detail = format!("column '{label}' is not known");
                self.error = Some(ParseError::new(line.number, Reason::UnknownColumn, detail));
            }
            Taken::Known | Taken::Other => {}
        }
        self.bounds(line.number);
    }

    fn begin(&mut self, line: u64) {
        self.table = text::Open::None;
        self.record = json::Open::default();
        self.runs.push(Run { line, ..Run::default() });
    }

    fn bounds(&mut self, line: u64) {
        let rows = self.runs.last().map_or(0, Run::row_count);
        if self.runs.len() > MAX_RUNS || rows > MAX_ROWS {
            let detail = "more runs or rows than one log may hold";
            self.error = Some(ParseError::new(line, Reason::TooLarge, detail));
        }
    }

    /// Ends the log.
    pub(crate) fn finish(self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some((line, text)) = self.fatal {
            return Err(ParseError::new(line, Reason::Fatal, text));
        }
        let Some(first) = self.runs.first().map(|run| run.line) else {
            return Err(ParseError::new(lines, Reason::NotFound, "no output of IOR"));
        };
        let mut parsed = self.parsed;
        self.noise.count(&mut parsed);
        let runs = attempts(self.runs, &mut parsed);
        for run in &runs {
            run.marks.check(&mut parsed)?;
            let labels =
                if runs.len() > 1 { vec![("run", run.line.to_string())] } else { Vec::new() };
            report(run, &labels, &mut parsed);
        }
        if !parsed.metrics.iter().any(|metric| metric.better.is_some()) {
            return Err(ParseError::new(first, Reason::NoData, "no operation was measured"));
        }
        let ended = evidence.ended.map(|ended| ended.code == 0);
        parsed.complete = complete(&runs, ended, &mut parsed);
        Ok(parsed)
    }
}

/// Runs of one command line are attempts: the last whole one counts.
fn attempts(runs: Vec<Run>, parsed: &mut Parsed) -> Vec<Run> {
    let mut kept: Vec<Run> = Vec::new();
    for run in runs {
        let earlier = kept
            .iter_mut()
            .find(|earlier| earlier.command == run.command && !run.command.is_empty());
        let Some(earlier) = earlier else {
            kept.push(run);
            continue;
        };
        let better = state(&run) >= state(earlier);
        let (line, other) =
            if better { (run.line, earlier.line) } else { (earlier.line, run.line) };
        parsed
            .warn(line, format!("two runs of one command line; this one counts, not line {other}"));
        if better {
            *earlier = run;
        }
    }
    kept
}

fn state(run: &Run) -> u8 {
    let states: Vec<_> = run.tests.values().map(super::run::Test::is_whole).collect();
    match (states.is_empty() || states.contains(&Some(false)), states.contains(&None)) {
        (true, _) => 0,
        (false, true) => 1,
        (false, false) => 2,
    }
}

fn complete(runs: &[Run], ended: Option<bool>, parsed: &mut Parsed) -> Complete {
    for run in runs {
        for line in run.tests.values().flat_map(|test| &test.damaged) {
            parsed.warn(*line, "a row that is cut, broken or there twice");
        }
    }
    let states: Vec<_> = runs.iter().map(state).collect();
    let is_shown = runs.iter().all(|run| state(run) == 2 || run.is_finished) || ended == Some(true);
    if states.contains(&0) || ended == Some(false) {
        parsed.warn(0, "rows or sums are missing");
        return Complete::No;
    }
    if is_shown { Complete::Yes } else { Complete::Unknown }
}
