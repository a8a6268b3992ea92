//! A reading for a person: first what it comes to, then each number with the line that gave it, then what to know.

use std::fmt::Write;

use hpc_bench::report::{Status, complete};
use hpc_bench::text::decimal;
use hpc_bench::{Better, Cell, Column, Evidence, Metric, ParseError, Parsed, Row, Table, Verdict};

use super::read::Log;

/// Writing to a string cannot fail, so its result says nothing.
macro_rules! say {
    ($out:expr, $($arguments:tt)*) => { let _ = writeln!($out, $($arguments)*); };
}

/// The whole answer.
pub(super) fn text(log: &Log, status: Status, verdict: Option<&Verdict>) -> String {
    let mut out = String::new();
    let application = log.application.unwrap_or("unknown application");
    match &log.reading {
        Ok(parsed) => {
            let whole = complete(parsed.complete);
            say!(out, "{application}: {}, complete: {whole}", status.name());
            of_parsed(parsed, verdict, &mut out);
        }
        Err(error) => {
            say!(out, "{application}: {}", status.name());
            of_error(error, &mut out);
            if log.application.is_none() {
                say!(out, "No line tells whose log it is: name it with --application NAME.");
            }
        }
    }
    out
}

fn of_parsed(parsed: &Parsed, verdict: Option<&Verdict>, out: &mut String) {
    if let Some(Verdict::Invalid { reason, message }) = verdict {
        say!(out, "{reason}: {message}");
    }
    for table in &parsed.tables {
        of_table(table, out);
    }
    of_metrics(&parsed.metrics, out);
    of_evidence(&parsed.evidence, out);
    of_warnings(parsed, out);
}

fn of_error(error: &ParseError, out: &mut String) {
    say!(out, "{error}");
    if let Some(progress) = error.progress {
        let asked = progress.asked.map_or("unknown".to_owned(), |asked| asked.to_string());
        say!(out, "iterations: {} done, {asked} asked", progress.done);
    }
    of_evidence(&error.evidence, out);
}

fn of_table(table: &Table, out: &mut String) {
    let name = table.benchmark.as_deref().unwrap_or(&table.title);
    let version = table.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
    let notes: Vec<_> =
        table.attributes.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let colon = if notes.is_empty() { "" } else { ": " };
    say!(out, "\n{name}{version} (line {}){colon}{}", table.line, notes.join(", "));
    let widths: Vec<_> = table.columns.iter().map(width).collect();
    let names = table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    let units: Vec<_> = table.columns.iter().map(|column| column.unit.to_string()).collect();
    let (size, bytes) = if table.sized { ("SIZE", "B") } else { ("", "") };
    say!(out, "{:>6}  {size:<9}{}", "LINE", aligned(&widths, &names));
    if units != names {
        say!(out, "{:>6}  {bytes:<9}{}", "", aligned(&widths, &units));
    }
    for row in &table.rows {
        let cells: Vec<_> = row.cells.iter().map(|cell| show(*cell)).collect();
        say!(out, "{:>6}  {:<9}{}", row.line, of_size(row), aligned(&widths, &cells));
    }
    for damage in &table.damaged {
        let size = damage.size.map_or(String::new(), |size| size.to_string());
        say!(out, "{:>6}  {size:<9}  damaged", damage.line);
    }
}

fn width(column: &Column) -> usize {
    column.name.len().max(column.unit.len()).max(9)
}

fn aligned(widths: &[usize], cells: &[String]) -> String {
    let cells = widths.iter().zip(cells);
    let cells: Vec<_> = cells.map(|(width, cell)| format!("  {cell:>width$}")).collect();
    cells.concat()
}

fn of_size(row: &Row) -> String {
    row.size.map_or(String::new(), |size| size.to_string())
}

fn show(cell: Cell) -> String {
    match cell {
        Cell::Number(value) => decimal(value).unwrap_or_default(),
        Cell::NotNumeric => "not a number".to_owned(),
        Cell::Passed => "pass".to_owned(),
        Cell::Failed => "FAIL".to_owned(),
    }
}

fn of_metrics(metrics: &[Metric], out: &mut String) {
    if metrics.is_empty() {
        return;
    }
    say!(out, "\n{:>6}  {:<24}{:>14}  {:<9} {:<7} OF", "LINE", "METRIC", "VALUE", "UNIT", "BETTER");
    for metric in metrics {
        let labels: Vec<_> =
            metric.labels.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let value = decimal(metric.value).unwrap_or_default();
        let line = format!(
            "{:>6}  {:<24}{value:>14}  {:<9} {:<7} {}",
            metric.line,
            metric.name,
            metric.unit,
            better(metric.better),
            labels.join(", ")
        );
        say!(out, "{}", line.trim_end());
    }
}

fn better(better: Option<Better>) -> &'static str {
    match better {
        Some(Better::Lower) => "lower",
        Some(Better::Higher) => "higher",
        None => "-",
    }
}

fn of_evidence(evidence: &Evidence, out: &mut String) {
    let providers: Vec<_> =
        evidence.providers.iter().map(|(name, line)| format!("{name} (line {line})")).collect();
    let hosts: Vec<_> = evidence
        .hosts()
        .into_iter()
        .map(|(host, ranks)| format!("{host} ({ranks} ranks)"))
        .collect();
    let facts = [
        ("MPI", evidence.mpi.clone().unwrap_or_default()),
        ("libfabric", evidence.libfabric.clone().unwrap_or_default()),
        ("providers", providers.join(", ")),
        ("hosts", hosts.join(", ")),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    for (index, (name, value)) in known.enumerate() {
        say!(out, "{}{name}: {value}", if index == 0 { "\n" } else { "" });
    }
}

fn of_warnings(parsed: &Parsed, out: &mut String) {
    for (index, warning) in parsed.warnings.iter().enumerate() {
        let first = if index == 0 { "\n" } else { "" };
        let place =
            if warning.line > 0 { format!("line {}: ", warning.line) } else { String::new() };
        say!(out, "{first}warning: {place}{}", warning.message);
    }
    if parsed.warnings_left_out > 0 {
        say!(out, "warning: {} more", parsed.warnings_left_out);
    }
}
