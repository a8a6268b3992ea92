//! Reads SeisSol's log: only the summary counts. What it prints while it runs is the state of one moment, often of one
//! rank, and the numbers in its prefix are a date.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::quantity::{giga, seconds};
use crate::evidence::Evidence;
use crate::facts::{Facts, Rule, count, measure, shortened};
use crate::failure::{ParseError, Reason};
use crate::line::{Line, pattern};
use crate::parsed::Better::{Higher, Lower};
use crate::parsed::{Complete, Parsed};

/// What stands before a message: `Mon Jun 10 07:00:00, Info:  `, `Rank:        0 | Info    | `,
/// `2026-08-22 12:34:56.123 info 0 : `.
static PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*(?:\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d, Info:|Rank:\s*\d+\s*\| Info\s*\||\d{4}-\d\d-\d\d \S+\s+info\s+\S+\s*:)",
    )
});

const ELAPSED: Rule = measure("elapsed_s", "s", Lower, "");
const COMPUTE: Rule = measure("compute_s", "s", Lower, "");
const IO: Rule = measure("io_s", "s", Lower, "");
const SIMULATION: Rule = measure("simulation_s", "s", Lower, "");
const HW_RATE: Rule = measure("hw_gflops", "GFLOP/s", Higher, "");
const NZ_RATE: Rule = measure("nz_gflops", "GFLOP/s", Higher, "");
const HW_TOTAL: Rule = count("hw_gflop", "GFLOP", "");
const NZ_TOTAL: Rule = count("nz_gflop", "GFLOP", "");
const PART: Rule = count("nz_part_pct", "%", "");

type Read = fn(&mut Facts, &Captures<'_>, Line<'_>);

/// Labels of the summary, behind any prefix. The first group is the number, or the text it stands in.
const LABELS: &[(&str, Read)] = &[
    (r"Elapsed time \(via clock_gettime\):(.*)$", |f, c, l| duration(f, &ELAPSED, &c[1], l)),
    (r"Wall time \(via gettimeofday\):(.*)$", |f, c, l| duration(f, &ELAPSED, &c[1], l)),
    (r"Simulation time \(total\):(.*)$", |f, c, l| duration(f, &ELAPSED, &c[1], l)),
    (r"Simulation time \(compute\):(.*)$", |f, c, l| duration(f, &COMPUTE, &c[1], l)),
    (r"Simulation time \((?:blocking )?IO\):(.*)$", |f, c, l| duration(f, &IO, &c[1], l)),
    (r"Time spent in simulation:(.*)$", |f, c, l| duration(f, &SIMULATION, &c[1], l)),
    (r"Total calculated HW-GFLOP/s:\s*(\S+)\s*$", |f, c, l| plain(f, &HW_RATE, &c[1], l)),
    (r"Total calculated NZ-GFLOP/s:\s*(\S+)\s*$", |f, c, l| plain(f, &NZ_RATE, &c[1], l)),
    (r"Total calculated HW-GFLOP:\s*(\S+)\s*$", |f, c, l| plain(f, &HW_TOTAL, &c[1], l)),
    (r"Total calculated NZ-GFLOP:\s*(\S+)\s*$", |f, c, l| plain(f, &NZ_TOTAL, &c[1], l)),
    (r"Total calculated HW-FLOP/s:(.*)$", |f, c, l| prefixed(f, &HW_RATE, &c[1], l)),
    (r"Total calculated NZ-FLOP/s:(.*)$", |f, c, l| prefixed(f, &NZ_RATE, &c[1], l)),
    (r"Total calculated HW-FLOP:(.*)$", |f, c, l| prefixed(f, &HW_TOTAL, &c[1], l)),
    (r"Total calculated NZ-FLOP:(.*)$", |f, c, l| prefixed(f, &NZ_TOTAL, &c[1], l)),
    (r"NZ part of HW-FLOP:\s*(\S+)\s*%", |f, c, l| plain(f, &PART, &c[1], l)),
    (r"([A-Za-z][\w -]{0,60}?)\s+calculated (HW|NZ)-(G?)FLOP:(.*)$", category),
];

static PATTERNS: LazyLock<Vec<Regex>> =
    LazyLock::new(|| LABELS.iter().map(|(label, _)| pattern(&format!(r"^{label}"))).collect());
static WELCOME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^Welcome(?: to SeisSol)?$"));
static DONE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:Simulation done\.|SeisSol done\. Goodbye\.)$"));
static FATAL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:, Error:|\| Error\s*\||\berror\s+\S+\s*: )|Inf/NaN|slurmstepd: error: \*\*\*|MPI_ABORT was invoked|terminate called",
    )
});
static WORDS: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[Tt]ime|FLOP|[Dd]one|Welcome|[Ee]rror|NaN|ABORT|terminate"));

/// Reads one log.
#[derive(Debug, Default, Clone)]
pub(crate) struct Reader {
    facts: Facts,
    is_done: bool,
    fatal: Option<(u64, String)>,
    last: String,
}

impl Reader {
    /// Takes the next line.
    pub(crate) fn line(&mut self, line: Line<'_>) {
        if !line.ended || !line.whole {
            return;
        }
        if !line.text.trim().is_empty() {
            self.last.clear();
            self.last.extend(line.text.trim().chars().take(160));
        }
        if WORDS.is_match(line.text) {
            self.message(line);
        }
    }

    fn message(&mut self, line: Line<'_>) {
        if self.fatal.is_none() && FATAL.is_match(line.text) {
            self.fatal = Some((line.number, shortened(line.text)));
        }
        let text = unprefixed(line.text);
        if WELCOME.is_match(text) {
            self.facts.next();
            self.is_done = false;
            self.fatal = None;
        }
        self.is_done |= DONE.is_match(text);
        let mut labels = LABELS.iter().zip(PATTERNS.iter());
        let found = labels.find_map(|((_, read), pattern)| Some((read, pattern.captures(text)?)));
        if let Some((read, captures)) = found {
            read(&mut self.facts, &captures, line);
        }
    }

    /// Ends the log.
    pub(crate) fn finish(self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        let has_summary = self.facts.value("elapsed_s").is_some();
        match self.fatal {
            Some((line, text)) if !has_summary => {
                let detail = format!("no final summary; {text}");
                return Err(ParseError::new(line, Reason::Fatal, detail));
            }
            None if !has_summary => {
                let detail = format!("no final summary; the log ends with: {}", self.last);
                return Err(ParseError::new(lines, Reason::NotFound, detail));
            }
            Some(_) | None => {}
        }
        let mut parsed = Parsed::default();
        let is_whole = self.facts.report(&["elapsed_s", "hw_gflop"], &mut parsed)?;
        if let Some((line, text)) = &self.fatal {
            parsed.warn(*line, format!("an error was reported: {text}"));
        }
        let failed = evidence.ended.is_some_and(|ended| ended.code != 0) || self.fatal.is_some();
        parsed.complete =
            if is_whole && self.is_done && !failed { Complete::Yes } else { Complete::No };
        if !self.is_done {
            parsed.warn(lines, "the log ends before SeisSol said that it is done");
        }
        Ok(parsed)
    }
}

/// The message of a line, without what the launcher and the logger put before it.
fn unprefixed(line: &str) -> &str {
    let (_, rest) = crate::prefix::split(line);
    let end = PREFIX.find(rest).map_or(0, |found| found.end());
    rest.get(end..).unwrap_or_default().trim()
}

fn duration(facts: &mut Facts, rule: &Rule, text: &str, line: Line<'_>) {
    let value = seconds(text, |token| facts.part(token, line));
    add(facts, rule, value, line);
}

fn plain(facts: &mut Facts, rule: &Rule, text: &str, line: Line<'_>) {
    if let Some(value) = facts.number(text, line) {
        facts.add(rule.metric(value, line.number));
    }
}

fn prefixed(facts: &mut Facts, rule: &Rule, text: &str, line: Line<'_>) {
    let base = if rule.unit.ends_with("/s") { "FLOP/s" } else { "FLOP" };
    let value = giga(text, base, |token| facts.part(token, line));
    add(facts, rule, value, line);
}

fn add(facts: &mut Facts, rule: &Rule, value: Option<f64>, line: Line<'_>) {
    match value {
        Some(value) => facts.add(rule.metric(value, line.number)),
        None => facts.strange(line),
    }
}

/// `WP calculated HW-GFLOP:  1490000`; the categories are free text in new versions.
fn category(facts: &mut Facts, captures: &Captures<'_>, line: Line<'_>) {
    let rule = if &captures[2] == "HW" { &HW_TOTAL } else { &NZ_TOTAL };
    let text = captures[4].trim();
    let value = if captures[3].is_empty() {
        giga(text, "FLOP", |token| facts.part(token, line))
    } else {
        facts.part(text, line)
    };
    match value {
        Some(value) => {
            let mut metric = rule.metric(value, line.number);
            metric.labels.push(("category", captures[1].to_owned()));
            facts.add(metric);
        }
        None => facts.strange(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Application, Expectation, parse};

    fn read(text: &str) -> Result<Parsed, ParseError> {
        parse(&Application::SeisSol, text.as_bytes(), &Expectation::default())
    }

    #[test]
    fn every_generation_of_the_log_gives_the_same_names() {
        let old = "Mon Jul 08 06:18:25, Info:  Wall time (via gettimeofday): 123.4 seconds. \n\
            Mon Jul 08 06:18:25, Info:  Total   measured HW-GFLOP:  0 \n\
            Mon Jul 08 06:18:25, Info:  Total calculated HW-GFLOP:  11.9672 \n\
            Mon Jul 08 06:18:25, Info:  Total calculated NZ-GFLOP:  7.21896 \n\
            Mon Jul 08 06:18:25, Info:  SeisSol done. Goodbye. \n";
        let middle = "Rank:        0 | Info    | Simulation time (total): 1 min 12.3456 s (min: 1 min 12.1 s, max: 1 min 12.5 s) \n\
            Rank:        0 | Info    | Total calculated HW-FLOP:  1.5000 TFLOP \n\
            Rank:        0 | Info    | Total calculated HW-FLOP/s:  12.3456 TFLOP/s \n\
            Rank:        0 | Info    | Simulation done. \n";
        let new = "2026-08-22 12:34:56.123 info 0 : Simulation time (total): 1 min 12.3 s (per rank: (7.2000e+01 ± 1.0e-03) s; range: [7.1e+01, 7.3e+01])\n\
            2026-08-22 12:34:56.123 info 0 : Total calculated HW-FLOP:  900.0000 GFLOP\n\
            2026-08-22 12:34:56.123 info 0 : Total calculated HW-FLOP/s:  12.3000 GFLOP/s\n\
            2026-08-22 12:34:56.123 info - : Simulation done.\n";
        for (text, elapsed, total, rate) in [
            (old, 123.4, 11.9672, None),
            (middle, 72.3456, 1500.0, Some(12_345.6)),
            (new, 72.3, 900.0, Some(12.3)),
        ] {
            let parsed = read(text).unwrap();
            let value = |name| parsed.metric(name).map(|metric| metric.value);
            assert_eq!(parsed.complete, Complete::Yes, "{:?}", parsed.warnings);
            let got = (value("elapsed_s"), value("hw_gflop"), value("hw_gflops"));
            assert_eq!(got, (Some(elapsed), Some(total), rate), "{text}");
        }
    }

    #[test]
    fn what_is_printed_while_it_runs_is_no_result() {
        let running = "Mon Jun 10 07:00:20, Info:  464.977 GFLOPS on rank 0 \n\
            Mon Jun 10 07:00:20, Info:  Performance since the start: 3.2 TFLOP/s (rank 0: 464.9 GFLOP/s, average over ranks: 460 GFLOP/s) \n\
            2026-08-22 12:34:56.123 info 0 : HW-FLOP/s since start: 12.3 TFLOP/s (per rank: (384.1 ± 2.0) GFLOP/s)\n";
        let error = read(running).unwrap_err();
        assert_eq!((error.reason, error.line), (Reason::NotFound, 3));
        let killed = format!(
            "{running}slurmstepd: error: *** JOB 77 ON n0 CANCELLED DUE TO TIME LIMIT ***\n"
        );
        let error = read(&killed).unwrap_err();
        assert_eq!((error.reason, error.line), (Reason::Fatal, 4));
    }

    #[test]
    fn a_second_run_in_one_log_is_another_attempt() {
        let first = "Welcome to SeisSol\nElapsed time (via clock_gettime): 10.0 seconds.\nTotal calculated HW-GFLOP:  1\nSimulation done.\n";
        let cut = "Welcome to SeisSol\nElapsed time (via clock_gettime): 20.0 seconds.\n";
        let parsed = read(&format!("{first}{cut}")).unwrap();
        let value = parsed.metric("elapsed_s").map(|metric| metric.value);
        assert_eq!((parsed.complete, value), (Complete::No, Some(10.0)));
    }
}
