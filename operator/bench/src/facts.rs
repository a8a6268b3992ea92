//! Single numbers found line by line, for applications that print labels instead of tables.

use std::borrow::Cow;

use regex::Regex;

use crate::failure::ParseError;
use crate::line::{Line, pattern};
use crate::number::Marks;
use crate::parsed::{Better, Metric, Parsed};

/// A label and the number behind it.
pub(crate) struct Rule {
    /// The label; its first capture is the number.
    pub pattern: &'static str,
    pub name: &'static str,
    pub unit: &'static str,
    pub better: Option<Better>,
}

/// A rule of a measured number.
pub(crate) const fn measure(
    name: &'static str,
    unit: &'static str,
    better: Better,
    pattern: &'static str,
) -> Rule {
    Rule { pattern, name, unit, better: Some(better) }
}

/// A rule of a number that measures nothing.
pub(crate) const fn count(name: &'static str, unit: &'static str, pattern: &'static str) -> Rule {
    Rule { pattern, name, unit, better: None }
}

impl Rule {
    /// What the rule says of a value.
    pub(crate) fn metric(&self, value: f64, line: u64) -> Metric {
        Metric {
            name: self.name.to_owned(),
            labels: Vec::new(),
            value,
            unit: Cow::Borrowed(self.unit),
            better: self.better,
            line,
        }
    }
}

/// The patterns of rules.
pub(crate) fn compile(rules: &[Rule]) -> Vec<Regex> {
    rules.iter().map(|rule| pattern(rule.pattern)).collect()
}

/// The numbers of one attempt after another: a name that comes again begins the next.
#[derive(Debug, Default, Clone)]
pub(crate) struct Facts {
    now: Vec<Metric>,
    before: Vec<Vec<Metric>>,
    dropped: usize,
    marks: Marks,
    strange: Vec<(u64, String)>,
}

/// Attempts that are remembered; older ones are only counted.
const MAX_ATTEMPTS: usize = 1000;

impl Facts {
    /// Takes the number of the first rule a line follows.
    pub(crate) fn read(&mut self, rules: &[Rule], patterns: &[Regex], line: Line<'_>) {
        let mut found = rules.iter().zip(patterns);
        let found = found.find_map(|(rule, pattern)| {
            Some((rule, pattern.captures(line.text)?.get(1)?.as_str()))
        });
        if let Some((rule, token)) = found
            && let Some(value) = self.number(token, line)
        {
            self.add(rule.metric(value, line.number));
        }
    }

    /// Reads a number; what stands in the place of one without being one is noted.
    pub(crate) fn number(&mut self, token: &str, line: Line<'_>) -> Option<f64> {
        let token = token.trim_end_matches(['%', ')', ';']);
        let value = self.part(token, line);
        if value.is_none() {
            let token = shortened(token);
            let message = format!("'{token}' is not a number: {}", shortened(line.text));
            self.strange.push((line.number, message));
        }
        value
    }

    /// Reads a number that is a part of a quantity.
    pub(crate) fn part(&mut self, token: &str, line: Line<'_>) -> Option<f64> {
        self.marks.read(token, line.number)
    }

    /// Notes a line whose label is known and whose number is not one.
    pub(crate) fn strange(&mut self, line: Line<'_>) {
        self.strange.push((line.number, format!("no number: {}", shortened(line.text))));
    }

    /// Takes a number.
    pub(crate) fn add(&mut self, metric: Metric) {
        let again = |known: &Metric| known.name == metric.name && known.labels == metric.labels;
        if self.now.iter().any(again) {
            self.next();
        }
        self.now.push(metric);
    }

    /// Begins the next attempt.
    pub(crate) fn next(&mut self) {
        let last = std::mem::take(&mut self.now);
        if last.is_empty() {
            return;
        }
        if self.before.len() == MAX_ATTEMPTS {
            self.before.remove(0);
            self.dropped += 1;
        }
        self.before.push(last);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_empty() && self.before.is_empty()
    }

    /// The value of the last attempt.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        self.now.iter().find(|metric| metric.name == name).map(|metric| metric.value)
    }

    /// Adds the numbers of the last attempt that has all of these names, and says what is wrong with them; whether nothing
    /// is. A name that is known already gets its line as a label.
    pub(crate) fn report(
        mut self,
        needs: &[&str],
        parsed: &mut Parsed,
    ) -> Result<bool, ParseError> {
        self.marks.check(parsed)?;
        let is_sane = self.strange.is_empty();
        for (line, text) in std::mem::take(&mut self.strange) {
            parsed.warn(line, text);
        }
        if self.is_empty() {
            return Ok(is_sane);
        }
        let chosen = self.choose(needs);
        let is_whole = chosen.is_whole && chosen.is_last && is_sane;
        chosen.explain(needs, parsed);
        for mut metric in chosen.metrics {
            if parsed
                .metrics
                .iter()
                .any(|known| known.name == metric.name && metric.labels.is_empty())
            {
                metric.labels.push(("line", metric.line.to_string()));
            }
            parsed.metrics.push(metric);
        }
        Ok(is_whole)
    }

    fn choose(mut self, needs: &[&str]) -> Chosen {
        self.next();
        let kept = self.before.len();
        let has = |attempt: &[Metric], name: &str| attempt.iter().any(|metric| metric.name == name);
        let whole = |attempt: &Vec<Metric>| needs.iter().all(|name| has(attempt, name));
        let index = self.before.iter().rposition(whole);
        let is_last = index.is_some_and(|index| index + 1 == kept);
        let attempts = kept + self.dropped;
        let metrics = index.or(kept.checked_sub(1)).map(|index| self.before.swap_remove(index));
        Chosen {
            metrics: metrics.unwrap_or_default(),
            attempts,
            is_whole: index.is_some(),
            is_last,
        }
    }
}

/// The attempt that counts.
struct Chosen {
    metrics: Vec<Metric>,
    attempts: usize,
    is_whole: bool,
    is_last: bool,
}

impl Chosen {
    fn explain(&self, needs: &[&str], parsed: &mut Parsed) {
        let line = self.metrics.first().map_or(0, |metric| metric.line);
        if self.attempts > 1 {
            let message = format!("{} results; the one from line {line} on counts", self.attempts);
            parsed.warn(line, message);
        }
        if !self.is_whole || !self.is_last {
            parsed.warn(line, format!("a result is cut; a whole one has {}", needs.join(", ")));
        }
    }
}

/// A text for a message: its first 160 characters.
pub(crate) fn shortened(text: &str) -> String {
    text.trim().chars().take(160).collect()
}
