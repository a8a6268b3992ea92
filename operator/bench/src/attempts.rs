//! Several tables of one kind in one log are attempts: the last whole one counts, rows of two are never mixed.

use crate::evidence::{Ended, Evidence};
use crate::expect::{ExpectedTable, SizeRange};
use crate::failure::{ParseError, Reason};
use crate::parsed::{Complete, Parsed, Table, Warning};

/// Why there is no row at all, if there is none.
pub(crate) fn nothing(tables: &[Table]) -> Option<ParseError> {
    let first = tables.first().filter(|_| tables.iter().all(|table| table.rows.is_empty()))?;
    let damaged = tables.iter().find(|table| table.damaged.len() > 1);
    if let Some(table) = damaged {
        let line = table.damaged.first().map_or(table.line, |damage| damage.line);
        let detail = format!("'{}': every row is damaged or contradicted", table.title);
        return Some(ParseError::new(line, Reason::Malformed, detail));
    }
    let detail = format!("'{}' has no row of data", first.title);
    Some(ParseError::new(first.line, Reason::NoData, detail))
}

/// Of each kind of table the one that counts, in the order of their first appearance.
pub(crate) fn choose(tables: Vec<Table>, warnings: &mut Vec<Warning>) -> Vec<Table> {
    let mut groups: Vec<Vec<Table>> = Vec::new();
    for table in tables {
        match groups
            .iter_mut()
            .find(|group| group.first().is_some_and(|first| is_same(first, &table)))
        {
            Some(group) => group.push(table),
            None => groups.push(vec![table]),
        }
    }
    groups.into_iter().filter_map(|group| best(group, warnings)).collect()
}

/// A table that ended before its first row may be an attempt at any table of its title.
fn is_same(one: &Table, other: &Table) -> bool {
    let unknown = one.rows.is_empty() || other.rows.is_empty();
    one.title == other.title && (unknown || one.attributes == other.attributes)
}

fn best(group: Vec<Table>, warnings: &mut Vec<Warning>) -> Option<Table> {
    let attempts = u32::try_from(group.len()).unwrap_or(u32::MAX);
    let rank = |table: &Table| (table.is_sound(), table.rows.len());
    let lines: Vec<u64> = group.iter().map(|table| table.line).collect();
    let best = group.into_iter().max_by_key(rank)?;
    if attempts > 1 {
        let others: Vec<_> =
            lines.iter().filter(|line| **line != best.line).map(u64::to_string).collect();
        let message = format!(
            "attempt {attempts} times; the one in line {} counts, not line {}",
            best.line,
            others.join(", ")
        );
        warnings.push(Warning { line: best.line, message });
    }
    Some(Table { attempts, ..best })
}

/// Whether everything asked for is there; what is not becomes a warning. `is_ended`: the log shows its own end;
/// `problems`: what the application itself knows to be missing.
pub(crate) fn complete(
    parsed: &mut Parsed,
    expected: &[ExpectedTable],
    evidence: &Evidence,
    is_ended: bool,
    problems: Vec<String>,
) -> Complete {
    let ended = end(parsed, evidence);
    let unsound = parsed.tables.iter().filter(|table| !table.is_sound());
    let mut found: Vec<_> = unsound.map(|table| (table.line, describe(table))).collect();
    let lacking = expected.iter().filter_map(|expected| lacks(parsed, expected));
    found.extend(lacking.chain(problems).map(|message| (0, message)));
    if let Some(failed) = ended.filter(|ended| ended.code != 0) {
        found.push((failed.line, format!("mpirun ended with code {}", failed.code)));
    }
    let is_bounded = !expected.is_empty() || ended.is_some() || is_ended;
    let complete = match (found.is_empty(), is_bounded) {
        (false, _) => Complete::No,
        (true, true) => Complete::Yes,
        (true, false) => Complete::Unknown,
    };
    for (line, message) in found {
        parsed.warn(line, message);
    }
    complete
}

/// The end of mpirun, if it is the end of these tables.
fn end(parsed: &Parsed, evidence: &Evidence) -> Option<Ended> {
    let last_rows = parsed.tables.iter().filter_map(|table| table.rows.last());
    let last = last_rows.map(|row| row.line).max();
    evidence.ended.filter(|ended| Some(ended.line) > last)
}

fn describe(table: &Table) -> String {
    if table.rows.is_empty() {
        return format!("'{}' has no row of data", table.title);
    }
    let sizes = |sizes: Vec<String>| {
        if sizes.is_empty() { "none".to_owned() } else { sizes.join(", ") }
    };
    let damaged = table
        .damaged
        .iter()
        .map(|damage| damage.size.map_or(format!("line {}", damage.line), |size| size.to_string()));
    let strange = table.not_numeric().iter().map(u64::to_string).collect();
    format!(
        "'{}': damaged: {}; not a number: {}",
        table.title,
        sizes(damaged.collect()),
        sizes(strange)
    )
}

/// What of an expected table is not there.
fn lacks(parsed: &Parsed, expected: &ExpectedTable) -> Option<String> {
    let name = &expected.benchmark;
    let mut of_name =
        parsed.tables.iter().filter(|table| table.benchmark.as_deref() == Some(name)).peekable();
    if of_name.peek().is_none() {
        return Some(format!("no table of {name}"));
    }
    let SizeRange { first, last } = expected.sizes?;
    let short = of_name.find(|table| !reaches(table, first, last))?;
    let end = short
        .rows
        .last()
        .and_then(|row| row.size)
        .map_or("nothing".to_owned(), |size| size.to_string());
    Some(format!("{name} ends at {end}; sizes {first} to {last} were asked"))
}

/// Rows double, so the first and the last size say that all between them are there or damaged.
fn reaches(table: &Table, first: u64, last: u64) -> bool {
    let begins = table.rows.first().and_then(|row| row.size).is_some_and(|size| size <= first);
    begins && table.rows.last().and_then(|row| row.size) == Some(last)
}
