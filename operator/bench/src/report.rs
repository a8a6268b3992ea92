//! A reading as one JSON object, and in one word.

use serde_json::{Map, Value, json};

use crate::failure::ParseError;
use crate::parsed::{Better, Cell, Complete, Metric, Parsed, Row, Table, Validation};
use crate::verdict::Verdict;

/// A reading in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Read, nothing damaged; whether the log is whole is another question.
    Ok,
    /// What is given is safe, but it is not all.
    Partial,
    /// No number.
    Failed,
    /// Read, but the numbers do not count: the program's own check failed, or the log proves something else than was asked.
    Invalid,
}

impl Status {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Invalid => "invalid",
        }
    }
}

/// The status of a reading; `verdict` where something was expected.
pub fn status(reading: &Result<Parsed, ParseError>, verdict: Option<&Verdict>) -> Status {
    let Ok(parsed) = reading else { return Status::Failed };
    let failed = |table: &Table| table.validation == Some(Validation::Failed);
    let is_invalid = matches!(verdict, Some(Verdict::Invalid { .. }));
    if parsed.complete == Complete::No {
        Status::Partial
    } else if is_invalid || parsed.tables.iter().any(failed) {
        Status::Invalid
    } else {
        Status::Ok
    }
}

/// The reading of a log as one object.
pub fn document(
    application: Option<&str>,
    reading: &Result<Parsed, ParseError>,
    verdict: Option<&Verdict>,
) -> Value {
    let mut object = Map::new();
    object.insert("application".to_owned(), json!(application));
    object.insert("status".to_owned(), json!(status(reading, verdict).name()));
    match reading {
        Ok(parsed) => of_parsed(parsed, verdict, &mut object),
        Err(error) => of_error(error, &mut object),
    }
    Value::Object(object)
}

fn of_parsed(parsed: &Parsed, verdict: Option<&Verdict>, object: &mut Map<String, Value>) {
    let mut add = |name: &str, value: Value| object.insert(name.to_owned(), value);
    add("complete", json!(complete(parsed.complete)));
    add("reasons", Value::Array(reasons(parsed, verdict)));
    add("tables", parsed.tables.iter().map(table).collect());
    add("metrics", parsed.metrics.iter().map(metric).collect());
    let warnings = parsed.warnings.iter();
    let warnings =
        warnings.map(|warning| json!({"line": warning.line, "message": warning.message}));
    add("warnings", warnings.collect());
    add("warningsLeftOut", json!(parsed.warnings_left_out));
    add("evidence", evidence(&parsed.evidence));
}

fn of_error(error: &ParseError, object: &mut Map<String, Value>) {
    let reason = json!({
        "line": error.line,
        "reason": error.reason.to_string(),
        "message": error.detail,
    });
    object.insert("complete".to_owned(), json!(complete(Complete::No)));
    object.insert("reasons".to_owned(), json!([reason]));
    if let Some(progress) = error.progress {
        object.insert("iterations".to_owned(), json!(progress.done));
        object.insert("requested_iterations".to_owned(), json!(progress.asked));
    }
    object.insert("evidence".to_owned(), evidence(&error.evidence));
}

/// Why the status is not ok.
fn reasons(parsed: &Parsed, verdict: Option<&Verdict>) -> Vec<Value> {
    let mut reasons = Vec::new();
    if parsed.complete == Complete::No {
        reasons.push(json!({"line": 0, "reason": "incomplete", "message": "damaged, cut or missing; see warnings"}));
    }
    for table in parsed.tables.iter().filter(|table| table.validation == Some(Validation::Failed)) {
        reasons.push(
            json!({"line": table.line, "reason": "validation failed", "message": table.title}),
        );
    }
    if let Some(Verdict::Invalid { reason, message }) = verdict {
        reasons.push(json!({"line": 0, "reason": reason.to_string(), "message": message}));
    }
    reasons
}

/// `Yes`, `No` or `Unknown`.
pub fn complete(complete: Complete) -> &'static str {
    match complete {
        Complete::Yes => "Yes",
        Complete::No => "No",
        Complete::Unknown => "Unknown",
    }
}

fn better(better: Option<Better>) -> Value {
    match better {
        Some(Better::Lower) => json!("lower"),
        Some(Better::Higher) => json!("higher"),
        None => Value::Null,
    }
}

fn metric(metric: &Metric) -> Value {
    let labels: Map<String, Value> =
        metric.labels.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    json!({
        "name": metric.name,
        "labels": labels,
        "value": metric.value,
        "unit": metric.unit,
        "better": better(metric.better),
        "line": metric.line,
    })
}

fn table(table: &Table) -> Value {
    let columns = table.columns.iter().map(
        |column| json!({"name": column.name, "unit": column.unit, "better": better(column.better)}),
    );
    let first = table.columns.iter().find(|column| column.better.is_some());
    json!({
        "benchmark": table.benchmark,
        "title": table.title,
        "version": table.version,
        "line": table.line,
        "attributes": table.attributes,
        "unit": first.map(|column| &column.unit),
        "better": better(first.and_then(|column| column.better)),
        "columns": columns.collect::<Value>(),
        "rows": table.rows.iter().map(|row| self::row(table, row)).collect::<Value>(),
        "damaged": table.damaged.iter().map(|damage| json!({"line": damage.line, "size": damage.size})).collect::<Value>(),
        "notNumeric": table.not_numeric(),
        "validation": table.validation.map(validation),
        "attempts": table.attempts,
    })
}

fn validation(validation: Validation) -> &'static str {
    match validation {
        Validation::Passed => "pass",
        Validation::Failed => "fail",
    }
}

fn row(table: &Table, row: &Row) -> Value {
    let cells = table.columns.iter().zip(&row.cells);
    let values: Map<String, Value> =
        cells.map(|(column, cell)| (column.name.clone(), self::cell(*cell))).collect();
    json!({"line": row.line, "size": row.size, "values": values})
}

fn cell(cell: Cell) -> Value {
    match cell {
        Cell::Number(value) => json!(value),
        Cell::NotNumeric => Value::Null,
        Cell::Passed => json!("pass"),
        Cell::Failed => json!("fail"),
    }
}

fn evidence(evidence: &crate::Evidence) -> Value {
    let between: Vec<_> = evidence.between_hosts().map(|(provider, _)| provider).collect();
    json!({
        "mpi": evidence.mpi,
        "libfabric": evidence.libfabric,
        "provider": between.first(),
        "providers": evidence.providers,
        "hosts": evidence.hosts(),
        "ranks": evidence.ranks.len(),
        "mpirunStartedAtMs": evidence.started_ms,
        "mpirunExitCode": evidence.ended.map(|ended| ended.code),
    })
}
