//! `osu_init` and `osu_hello` print one sentence instead of a table.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::line::pattern;
use crate::parsed::{Better, Cell, Column, Row, Table};

static INIT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^nprocs: (\d+), min: (\d+(?:\.\d+)?) ms, max: (\d+(?:\.\d+)?) ms, avg: (\d+(?:\.\d+)?) ms\s*$",
    )
});
static HELLO: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^This is a test with (\d+) processes\s*$"));

/// Fills a table from such a sentence; `None` if the line is none.
pub(super) fn read(line: &str, number: u64, table: &Table) -> Option<Table> {
    let (found, names) = match INIT.captures(line) {
        Some(found) => (found, &["processes", "min", "max", "avg"][..]),
        None => (HELLO.captures(line)?, &["processes"][..]),
    };
    let row = Row { line: number, size: None, cells: cells(&found) };
    let columns = names.iter().map(|name| column(name)).collect();
    Some(Table { columns, rows: vec![row], ..table.clone() })
}

fn cells(found: &Captures<'_>) -> Vec<Cell> {
    let texts = found.iter().skip(1).flatten();
    texts.filter_map(|text| text.as_str().parse().ok().map(Cell::Number)).collect()
}

fn column(name: &str) -> Column {
    let is_time = name != "processes";
    Column {
        name: name.to_owned(),
        unit: if is_time { "ms" } else { "" }.into(),
        better: is_time.then_some(Better::Lower),
    }
}
