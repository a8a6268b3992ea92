//! Whether the numbers of an attempt count. A run that ended well on the wrong fabric, on one host, or beyond physics
//! has no number at all.

use std::fmt;

use crate::expect::{Bounds, Expectation, Layout};
use crate::parsed::{Cell, Complete, Parsed, Table, Validation};

/// Whether numbers count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// They count: complete, as asked, plausible.
    Valid,
    /// They count; one host only, so no fabric was in use and none could be proved.
    NotApplicable,
    /// They do not count.
    Invalid {
        /// The class.
        reason: InvalidReason,
        /// One sentence with what was asked and what was seen.
        message: String,
    },
}

/// Why numbers do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InvalidReason {
    /// The log is not whole, or does not show that it is.
    Incomplete,
    /// The program found its own data wrong.
    ValidationFailed,
    /// Hosts or ranks per host are not those asked for, or the log does not show them.
    LayoutMismatch,
    /// Another provider than the asked one carried the messages.
    FabricMismatch,
    /// No provider is shown.
    FabricUnproven,
    /// Beyond what physics allows.
    Implausible,
}

impl fmt::Display for InvalidReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, out)
    }
}

/// Holds a log that was read against what was asked for.
pub fn judge(parsed: &Parsed, expected: &Expectation) -> Verdict {
    let problem = incomplete(parsed)
        .or_else(|| failed_validation(parsed))
        .or_else(|| expected.layout.and_then(|layout| other_layout(parsed, layout)))
        .or_else(|| other_fabric(parsed, expected))
        .or_else(|| implausible(parsed, expected));
    match problem {
        Some((reason, message)) => Verdict::Invalid { reason, message },
        None if parsed.evidence.hosts().len() == 1 => Verdict::NotApplicable,
        None => Verdict::Valid,
    }
}

type Problem = (InvalidReason, String);

fn incomplete(parsed: &Parsed) -> Option<Problem> {
    let message = match parsed.complete {
        Complete::Yes => return None,
        Complete::No => "the log is damaged or cut; see its warnings",
        Complete::Unknown => "the log does not show where it should end",
    };
    Some((InvalidReason::Incomplete, message.to_owned()))
}

fn failed_validation(parsed: &Parsed) -> Option<Problem> {
    let mut tables = parsed.tables.iter();
    let table = tables.find(|table| table.validation == Some(Validation::Failed))?;
    let failed = table.rows.iter().find(|row| row.cells.contains(&Cell::Failed));
    let line = failed.map_or(table.line, |row| row.line);
    let message = format!("the program's own validation failed; see line {line}");
    Some((InvalidReason::ValidationFailed, message))
}

fn other_layout(parsed: &Parsed, asked: Layout) -> Option<Problem> {
    let hosts = parsed.evidence.hosts();
    let even = hosts.values().all(|ranks| *ranks == asked.ranks_per_host);
    if even && u32::try_from(hosts.len()) == Ok(asked.hosts) {
        return None;
    }
    let seen: Vec<_> =
        hosts.iter().take(4).map(|(host, ranks)| format!("{host}: {ranks}")).collect();
    let more = hosts.len().saturating_sub(4);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let seen = if seen.is_empty() { "none shown".to_owned() } else { seen.join(", ") + &more };
    let Layout { hosts, ranks_per_host } = asked;
    let message =
        format!("asked {hosts} hosts with {ranks_per_host} ranks each; ranks seen: {seen}");
    Some((InvalidReason::LayoutMismatch, message))
}

fn other_fabric(parsed: &Parsed, expected: &Expectation) -> Option<Problem> {
    if expected.providers.is_empty() || parsed.evidence.hosts().len() == 1 {
        return None;
    }
    let asked = expected.providers.join(" or ");
    let mut seen = parsed.evidence.between_hosts().peekable();
    if seen.peek().is_none() {
        let message = format!("asked {asked}; the output shows no provider");
        return Some((InvalidReason::FabricUnproven, message));
    }
    let (other, line) =
        seen.find(|(name, _)| !expected.providers.iter().any(|asked| asked == name))?;
    let message = format!("asked {asked}; line {line} shows {other}");
    Some((InvalidReason::FabricMismatch, message))
}

fn implausible(parsed: &Parsed, expected: &Expectation) -> Option<Problem> {
    let between_hosts = parsed.evidence.hosts().len() != 1;
    let found =
        parsed.tables.iter().find_map(|table| beyond(table, &expected.bounds, between_hosts));
    found.map(|message| (InvalidReason::Implausible, message))
}

fn beyond(table: &Table, bounds: &Bounds, between_hosts: bool) -> Option<String> {
    let directions = if table.benchmark.as_deref().is_some_and(|name| name.contains("bibw")) {
        2.0
    } else {
        1.0
    };
    table.rows.iter().find_map(|row| {
        let mut cells = table.columns.iter().zip(&row.cells);
        cells.find_map(|(column, cell)| {
            let value = cell.number()?;
            let most = bounds.max_mb_per_s.map(|most| most * directions);
            match &*column.unit {
                "MB/s" if most.is_some_and(|most| value > most) => Some(format!(
                    "line {}: {value} MB/s is above the bound of {} MB/s",
                    row.line, most?
                )),
                "us" if between_hosts
                    && bounds.min_latency_us.is_some_and(|least| value < least) =>
                {
                    Some(format!(
                        "line {}: {value} us is below the bound of {} us",
                        row.line, bounds.min_latency_us?
                    ))
                }
                _ => None,
            }
        })
    })
}

#[cfg(test)]
mod tests;
