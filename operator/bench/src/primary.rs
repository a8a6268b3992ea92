//! The one number a table is known by.

use crate::parsed::{Better, Column, Metric, Row, Table};

/// The number that stands for a table: latency at its smallest size (or its only row), the highest bandwidth.
pub fn primary(table: &Table) -> Option<Metric> {
    let index = table.columns.iter().position(|column| column.better.is_some())?;
    let column = table.columns.get(index)?;
    let numbers = table.rows.iter().filter_map(|row| Some((row, row.cells.get(index)?.number()?)));
    let (row, value) = match column.better? {
        Better::Lower => numbers.min_by_key(|(row, _)| row.size)?,
        Better::Higher => numbers.max_by(|(_, one), (_, other)| one.total_cmp(other))?,
    };
    Some(metric(table, column, row, value))
}

fn metric(table: &Table, column: &Column, row: &Row, value: f64) -> Metric {
    let size = row.size.map(|size| ("size", size.to_string()));
    Metric {
        name: table.benchmark.clone().unwrap_or_else(|| table.title.clone()),
        labels: size.into_iter().collect(),
        value,
        unit: column.unit.clone(),
        better: column.better,
        line: row.line,
    }
}
