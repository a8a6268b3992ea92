//! Reads what MSC Nastran leaves behind. `MSC Nastran finished` is printed after failures too, and the program's exit code
//! is hidden by its wrapper: only the end-of-job mark without a fatal message is success.
//!
//! Elapsed time comes from the best evidence there is, and says which: the wrapper's timer, else the last ELAPSED of the
//! module log, else the difference of the dates, whose resolution is one second.

use std::sync::LazyLock;

use regex::Regex;

use crate::evidence::Evidence;
use crate::facts::{Facts, Rule, compile, count, measure, shortened};
use crate::failure::{ParseError, Reason};
use crate::line::{Line, pattern};
use crate::parsed::Better::Lower;
use crate::parsed::{Complete, Metric, Parsed};

const TIMER: &[Rule] = &[
    measure("real_s", "s", Lower, r"^\s*Real:\s+(\S+) seconds"),
    measure("user_s", "s", Lower, r"^\s*User:\s+(\S+) seconds"),
    measure("sys_s", "s", Lower, r"^\s*Sys:\s+(\S+) seconds"),
];
const ELAPSED: Rule = measure("elapsed_s", "s", Lower, "");
const MODES: Rule = count("modes", "", "");
const JOBS: Rule = count("jobs", "", "");
const VERSION_YEAR: &str = r"(?:MSC[ .]?)?N(?:ASTRAN|astran)";

static TIMER_PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| compile(TIMER));
static STARTED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"^\s*{VERSION_YEAR} (started|finished)\s+\w+ (\w+)\s+(\d+) (\d+):(\d\d):(\d\d) .*?(\d{{4}})\s*$"
    ))
});
static MODULE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*\d+:\d\d:\d\d\s+(?:(\d+):)?(\d+):(\d\d)(?:\.\d+)?\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+\S",
    )
});
static MODULE_HEADER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"DAY TIME\s+ELAPSED\s+I/O [MG]B"));
static END_OF_JOB: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^.?\s*\* \* \* END OF JOB \* \* \*\s*$"));
static FATAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"\*\*\* (?:USER|SYSTEM) FATAL (?:MESSAGE|ERROR)|JOB TERMINATED DUE TO|ALLOCATION FAILED|^\s*Error \(|^\s*(?:NSEXIT: )?EXIT\(([1-9]\d*)\)|^\s*Analysis complete\s+([1-9]\d*)\s*$",
    )
});
static MODE_TABLE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"R E A L +E I G E N V A L U E S|REAL EIGENVALUES"));
static MODE_ROW: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\s+(\d+)\s+(\d+)((?:\s+-?\d+\.\d+(?:[ED][+-]?\d+|[+-]\d+)?){5})\s*$")
});
static WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)nastran|real|user|sys:|elapsed|end of job|fatal|terminated|failed|error|exit|complete|:\d\d:\d\d",
    )
});

/// Reads one log.
#[derive(Debug, Default, Clone)]
pub(crate) struct Reader {
    timer: Facts,
    dates: [Option<(i64, u64)>; 2],
    module: Option<(f64, u64)>,
    is_module_log: bool,
    modes: Modes,
    ends: Vec<u64>,
    fatal: Option<(u64, String)>,
    last_data: u64,
}

/// The tables of eigenvalues, with blank lines and page headers between their rows.
#[derive(Debug, Default, Clone)]
struct Modes {
    is_open: bool,
    /// The last mode of each table, and the line of its first.
    tables: Vec<(u64, u64)>,
    is_broken: bool,
}

/// Tables of eigenvalues that are told apart; a job has one for each subcase.
const MAX_TABLES: usize = 1000;

impl Reader {
    /// Takes the next line.
    pub(crate) fn line(&mut self, line: Line<'_>) {
        if !line.ended || !line.whole {
            return;
        }
        // A form feed begins a page; what it stands before is a line like any other.
        let text = line.text.trim_start_matches('\u{c}');
        let line = Line { text, ..line };
        if self.modes.is_open {
            self.modes.row(line);
        }
        if WORDS.is_match(text) || text.contains("E I G E N") {
            self.label(line);
        }
    }

    fn label(&mut self, line: Line<'_>) {
        let text = line.text;
        self.timer.read(TIMER, &TIMER_PATTERNS, line);
        if MODE_TABLE.is_match(text) {
            self.modes.is_open = true;
            self.last_data = line.number;
        }
        if END_OF_JOB.is_match(text) {
            self.modes.is_open = false;
            self.ends.push(line.number);
        }
        if self.fatal.is_none() && FATAL.is_match(text) {
            self.fatal = Some((line.number, shortened(text)));
        }
        self.is_module_log |= MODULE_HEADER.is_match(text);
        if self.is_module_log {
            self.module(line);
        }
        self.date(line);
    }

    fn module(&mut self, line: Line<'_>) {
        let Some(found) = MODULE.captures(line.text) else { return };
        let part = |index| found.get(index).and_then(|part| part.as_str().parse::<f64>().ok());
        if let (hours, Some(minutes), Some(seconds)) = (part(1), part(2), part(3)) {
            self.module =
                Some((hours.unwrap_or(0.0) * 3600.0 + minutes * 60.0 + seconds, line.number));
        }
    }

    /// Takes the date of the start or end. The zone is localised text, so only the numbers are read.
    fn date(&mut self, line: Line<'_>) {
        let Some(found) = STARTED.captures(line.text) else { return };
        let number = |index: usize| found[index].parse::<i64>().ok();
        let (Some(month), Some(day), Some(year)) = (month(&found[2]), number(3), number(7)) else {
            return;
        };
        let clock = [number(4), number(5), number(6)].into_iter().flatten();
        let seconds = clock.fold(0, |sum, part| sum * 60 + part);
        let at = (days(year, month, day) * 86_400 + seconds, line.number);
        let is_end = &found[1] == "finished";
        if !is_end {
            self.dates = [None, None];
        }
        let [start, end] = &mut self.dates;
        *(if is_end { end } else { start }) = Some(at);
    }

    /// Ends the log.
    pub(crate) fn finish(self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        if let Some((line, text)) = self.fatal {
            return Err(ParseError::new(line, Reason::Fatal, text));
        }
        let mut parsed = Parsed::default();
        let has_timer = !self.timer.is_empty();
        let is_sane = self.timer.report(&["real_s", "user_s", "sys_s"], &mut parsed)?;
        let dates = match self.dates {
            [Some((start, _)), Some((end, line))] => Some((end - start, line)),
            _ => None,
        };
        parsed.metrics.extend(elapsed(&parsed, self.module, dates));
        let has_modes = !self.modes.tables.is_empty();
        parsed.metrics.extend(self.modes.metrics());
        parsed.metrics.extend(jobs(&self.ends));
        let ended = self.ends.last().copied();
        if parsed.metrics.is_empty() && ended.is_none() {
            let detail = "neither the end of a job nor a time was found";
            return Err(ParseError::new(lines, Reason::NotFound, detail));
        }
        let is_open_log = self.dates[0].is_some() && self.dates[1].is_none();
        let is_open_job = has_modes && ended.is_none_or(|end| end < self.last_data);
        if is_open_log || is_open_job {
            parsed.warn(lines, "the job has begun and its end is not in the log");
        }
        let failed = evidence.ended.is_some_and(|ended| ended.code != 0);
        let sound = is_sane && !is_open_log && !is_open_job && !self.modes.is_broken && !failed;
        let is_ended = ended.is_some() || has_timer || evidence.ended.is_some();
        parsed.complete = match (sound, is_ended) {
            (false, _) => Complete::No,
            (true, true) => Complete::Yes,
            (true, false) => Complete::Unknown,
        };
        Ok(parsed)
    }
}

/// Jobs that came to their end; a restart or a deck of several has more than one.
fn jobs(ends: &[u64]) -> Option<Metric> {
    let jobs = u32::try_from(ends.len()).ok().filter(|jobs| *jobs > 0)?;
    Some(JOBS.metric(f64::from(jobs), *ends.last()?))
}

/// Elapsed time by level of evidence.
fn elapsed(
    parsed: &Parsed,
    module: Option<(f64, u64)>,
    dates: Option<(i64, u64)>,
) -> Option<Metric> {
    let timer = parsed.metric("real_s").map(|real| (real.value, real.line, "timer"));
    let module = module.map(|(seconds, line)| (seconds, line, "module log"));
    let dates = dates.and_then(|(seconds, line)| {
        let seconds = u32::try_from(seconds).ok()?;
        Some((f64::from(seconds), line, "dates"))
    });
    let (seconds, line, level) = timer.or(module).or(dates)?;
    let mut metric = ELAPSED.metric(seconds, line);
    metric.labels.push(("from", level.to_owned()));
    Some(metric)
}

impl Modes {
    /// Modes are numbered from 1, on from page to page; a number that is left out is a row that was lost.
    fn row(&mut self, line: Line<'_>) {
        let Some(found) = MODE_ROW.captures(line.text) else { return };
        let Ok(mode) = found[1].parse::<u64>() else { return };
        let has_room = self.tables.len() < MAX_TABLES;
        match self.tables.last_mut() {
            Some((last, _)) if mode == *last + 1 => *last = mode,
            Some(_) | None if mode == 1 && has_room => self.tables.push((1, line.number)),
            Some(_) | None => self.is_broken = true,
        }
    }

    fn metrics(&self) -> impl Iterator<Item = Metric> {
        let is_one = self.tables.len() == 1;
        self.tables.iter().zip(1..).map(move |((modes, line), table)| {
            let modes = u32::try_from(*modes).unwrap_or(u32::MAX);
            let mut metric = MODES.metric(f64::from(modes), *line);
            if !is_one {
                metric.labels.push(("table", table.to_string()));
            }
            metric
        })
    }
}

fn month(name: &str) -> Option<i64> {
    let names =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let index = names.iter().position(|month| name.eq_ignore_ascii_case(month))?;
    i64::try_from(index).ok().map(|index| index + 1)
}

/// Days since some day long ago, in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Application, Expectation, parse};

    fn read(text: &str) -> Result<Parsed, ParseError> {
        parse(&Application::Nastran, text.as_bytes(), &Expectation::default())
    }

    const DATES: &str = "MSC Nastran started  Sun Nov 30 23:59:41 TSS 2025\n";
    const END: &str =
        "NSEXIT: EXIT(0)\nAnalysis complete 0\nMSC Nastran finished Mon Dec  1 00:03:45 TSS 2025\n";
    const MODULES: &str = " DAY TIME     ELAPSED     I/O MB   DEL_MB   CPU SEC  DEL_CPU  SUB_DMAP/DMAP_MODULE  MESSAGES\n\
        10:17:16      0:01      12.0     0.0       0.1      0.0  SESTATIC  20  IFPL  BEGN\n\
        10:45:02   0:27:46   50210.0    12.0    1500.2      0.3  SESTATIC 147  DECOMP BEGN\n";
    const TIMER: &str = "Real:     1234.567 seconds (  0:20:34.567)\nUser:     9123.456 seconds (  2:32:03.456)\nSys:        45.678 seconds (  0:00:45.678)\n";

    #[test]
    fn elapsed_time_is_of_the_best_evidence() {
        for (text, seconds, level) in [
            (format!("{DATES}{END}{TIMER}{MODULES}"), 1234.567, "timer"),
            (format!("{DATES}{END}{MODULES}"), 1666.0, "module log"),
            (format!("{DATES}{END}"), 244.0, "dates"),
        ] {
            let parsed = read(&text).unwrap();
            let elapsed = parsed.metric("elapsed_s").unwrap();
            assert_eq!(
                (elapsed.value.to_bits(), elapsed.labels[0].1.as_str()),
                (f64::to_bits(seconds), level)
            );
        }
    }

    #[test]
    fn finished_is_no_success() {
        for (text, line) in [
            (
                "Error (MM_CORE) malloc failed\nOPEN CORE MEMORY ALLOCATION FAILED\nAnalysis complete 8\nMSC Nastran finished Mon Dec  1 00:03:45 TSS 2025\n",
                1,
            ),
            (" *** USER FATAL MESSAGE 9050 (SEKRRS)\n     * * * END OF JOB * * *\n", 1),
            ("x\nJOB TERMINATED DUE TO 1 ERROR(S)\n", 2),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!((error.reason, error.line), (Reason::Fatal, line), "{text}");
        }
    }

    #[test]
    fn a_job_without_its_end_is_incomplete() {
        assert_eq!(read(DATES).unwrap_err().reason, Reason::NotFound);
        let begun = format!("{DATES}{MODULES}");
        assert_eq!(read(&begun).unwrap().complete, Complete::No);
        let whole = format!("{DATES}{END}{TIMER}");
        assert_eq!(read(&whole).unwrap().complete, Complete::Yes);
        let cut = format!("{DATES}{END}Real:     1234.567 seconds\n");
        assert_eq!(read(&cut).unwrap().complete, Complete::No);
    }
}
