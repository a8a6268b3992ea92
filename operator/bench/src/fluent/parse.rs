//! Reads Fluent's output. Exit code 0 is no success: a log counts if its number is there and nothing says that it failed.

use super::residuals;
use super::rules::{
    CLASSIC_OUTPUT, CONVERGED, DIVERGED, FATAL, HARNESS_OUTPUT, LICENCE, RANKS, SCALING,
    SCALING_ROW, TIMER_OUTPUT, WORDS,
};
use crate::evidence::Evidence;
use crate::expect::Expectation;
use crate::facts::{Facts, Rule, count, measure, shortened};
use crate::failure::{ParseError, Progress, Reason};
use crate::line::Line;
use crate::number::finite;
use crate::parsed::Better::Higher;
use crate::parsed::{Better, Complete, Metric, Parsed};

/// Numbers of which 0 means that there are none.
const RESULTS: [&str; 4] = ["time_per_iteration_s", "solver_speed", "solver_rating", "miups"];
const SCALING_RATE: Rule = measure("miups", "Mcell/s", Higher, "");
const SPEEDUP: Rule = measure("speedup", "", Higher, "");
const EFFICIENCY: Rule = measure("efficiency_pct", "%", Higher, "");

/// Reads one log.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    asked: Option<u64>,
    classic: Facts,
    timer: Facts,
    harness: Facts,
    is_scaling: bool,
    done: Option<u64>,
    remaining: Option<u64>,
    is_converged: bool,
    diverged: Option<(u64, String)>,
    licence: Option<(u64, String)>,
    fatal: Option<(u64, String)>,
}

impl Reader {
    pub(crate) fn new(expected: &Expectation) -> Self {
        Self {
            asked: expected.iterations,
            classic: Facts::default(),
            timer: Facts::default(),
            harness: Facts::default(),
            is_scaling: false,
            done: None,
            remaining: None,
            is_converged: false,
            diverged: None,
            licence: None,
            fatal: None,
        }
    }

    /// Takes the next line; whether it is certain to hold no evidence.
    pub(crate) fn line(&mut self, line: Line<'_>) -> bool {
        if !line.ended || !line.whole {
            return false;
        }
        if let Some((iteration, remaining)) = residuals::read(line.text) {
            self.done = Some(iteration);
            self.remaining = Some(remaining);
            return true;
        }
        if self.is_scaling {
            self.scaling(line);
        }
        if WORDS.is_match(line.text) {
            self.is_scaling |= SCALING.is_match(line.text);
            self.label(line);
            self.trouble(line);
        }
        false
    }

    fn label(&mut self, line: Line<'_>) {
        let outputs = [
            (&CLASSIC_OUTPUT, &mut self.classic),
            (&TIMER_OUTPUT, &mut self.timer),
            (&HARNESS_OUTPUT, &mut self.harness),
        ];
        for (output, facts) in outputs {
            facts.read(output.rules, &output.patterns, line);
        }
        if let Some(ranks) = RANKS.captures(line.text)
            && let Some(ranks) = finite(&ranks[1])
        {
            self.timer.add(count("ranks", "", "").metric(ranks, line.number));
        }
    }

    /// A row of the table the harness ends with.
    fn scaling(&mut self, line: Line<'_>) {
        let Some(found) = SCALING_ROW.captures(line.text) else { return };
        for (rule, group) in [(SCALING_RATE, 2), (SPEEDUP, 3), (EFFICIENCY, 4)] {
            if let Some(value) = self.harness.number(&found[group], line) {
                let mut metric = rule.metric(value, line.number);
                metric.labels.push(("ranks", found[1].to_owned()));
                self.harness.add(metric);
            }
        }
    }

    fn trouble(&mut self, line: Line<'_>) {
        let note = || Some((line.number, shortened(line.text)));
        self.is_converged |= CONVERGED.is_match(line.text);
        if self.diverged.is_none() && DIVERGED.is_match(line.text) {
            self.diverged = note();
        }
        if self.licence.is_none() && LICENCE.is_match(line.text) {
            self.licence = note();
        }
        if self.fatal.is_none() && FATAL.is_match(line.text) {
            self.fatal = note();
        }
    }

    /// Ends the log.
    pub(crate) fn finish(self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        let progress = self.progress();
        if let Some(error) = self.failure(progress, lines) {
            return Err(ParseError { progress, ..error });
        }
        let mut parsed = Parsed::default();
        let mut is_whole = true;
        let outputs = [
            (&CLASSIC_OUTPUT, self.classic),
            (&TIMER_OUTPUT, self.timer),
            (&HARNESS_OUTPUT, self.harness),
        ];
        for (output, facts) in outputs {
            is_whole &= facts.report(output.needs, &mut parsed)?;
        }
        if let Some((line, text)) = self.licence {
            parsed.warn(line, format!("a licence was waited for: {text}"));
        }
        if let Some(zero) = parsed
            .metrics
            .iter()
            .find(|metric| RESULTS.contains(&metric.name.as_str()) && metric.value <= 0.0)
        {
            let detail = format!("{} is {}: nothing was measured", zero.name, zero.value);
            return Err(ParseError::new(zero.line, Reason::NoData, detail));
        }
        check(&mut parsed);
        let ended = evidence.ended.map(|ended| ended.code == 0);
        parsed.complete = match (is_whole, ended) {
            (false, _) | (true, Some(false)) => Complete::No,
            (true, Some(true)) => Complete::Yes,
            (true, None) => Complete::Unknown,
        };
        Ok(parsed)
    }

    /// Iterations done and asked: from the timer, else from the residuals.
    fn progress(&self) -> Option<Progress> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count that was printed as digits"
        )]
        let timed = self.timer.value("iterations").map(|iterations| iterations as u64);
        let done = timed.or(self.done)?;
        // The timer may have been reset on the way, so only what is still to come is added to what it counted.
        let announced = self.remaining.and_then(|remaining| done.checked_add(remaining));
        Some(Progress { done, asked: self.asked.or(announced) })
    }

    fn failure(&self, progress: Option<Progress>, lines: u64) -> Option<ParseError> {
        let error =
            |(line, text): &(u64, String), reason| ParseError::new(*line, reason, text.clone());
        if let Some(diverged) = &self.diverged {
            return Some(error(diverged, Reason::Diverged));
        }
        if self.classic.is_empty() && self.timer.is_empty() && self.harness.is_empty() {
            let licence = self.licence.as_ref().map(|(line, text)| {
                ParseError::new(*line, Reason::Licence, format!("no metric found; {text}"))
            });
            let fatal = || self.fatal.as_ref().map(|fatal| error(fatal, Reason::Fatal));
            let nothing = || ParseError::new(lines, Reason::NotFound, "no metric found");
            return Some(licence.or_else(fatal).unwrap_or_else(nothing));
        }
        if let Some(fatal) = &self.fatal {
            return Some(error(fatal, Reason::Fatal));
        }
        let short =
            progress.filter(|progress| progress.asked.is_some_and(|asked| progress.done < asked));
        let short = short.filter(|_| !self.is_converged)?;
        let asked = short.asked.unwrap_or_default();
        let detail = format!("{} of {asked} iterations were done", short.done);
        Some(ParseError::new(lines, Reason::TooFewIterations, detail))
    }
}

/// Numbers that say the same thing must agree within one percent.
fn check(parsed: &mut Parsed) {
    let value = |name: &str| {
        let mut of_name = parsed.metrics.iter().filter(|metric| metric.name == name);
        of_name.next().map(|metric| metric.value)
    };
    let (time, rating) = (value("time_per_iteration_s"), value("solver_rating"));
    let iterations = value("iterations").filter(|iterations| *iterations > 0.0);
    let mean = value("total_wall_s").zip(iterations).map(|(total, iterations)| total / iterations);
    let mut disagree = Vec::new();
    if let (Some(time), Some(mean)) = (time, mean)
        && differs(time, mean, 0.0005)
    {
        disagree.push(format!("{time} s per iteration, but the total says {mean:.6} s"));
    }
    if let (Some(time), Some(rating), Some(iterations)) = (time, rating, iterations)
        && differs(rating, 86_400.0 / (time * iterations), 0.0)
    {
        disagree.push(format!("rating {rating} is not 86400 / ({time} s x {iterations})"));
    }
    let line = parsed.metrics.first().map_or(0, |metric| metric.line);
    for message in disagree {
        parsed.warn(line, message);
    }
    parsed.metrics.extend(mean.map(|mean| mean_metric(mean, parsed)));
}

/// The printed average has three decimals, which is one percent of a short iteration; the total says it better.
fn mean_metric(mean: f64, parsed: &Parsed) -> Metric {
    let line = parsed.metric("total_wall_s").map_or(0, |metric| metric.line);
    Metric {
        name: "total_per_iteration_s".to_owned(),
        labels: Vec::new(),
        value: mean,
        unit: "s".into(),
        better: Some(Better::Lower),
        line,
    }
}

fn differs(one: f64, other: f64, rounding: f64) -> bool {
    (one - other).abs() > rounding + 0.01 * other.abs()
}
