//! What a parser returns: tables or metrics with unit and direction, and how far they can be trusted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::evidence::Evidence;

/// A log read: every number carries its line, unit and direction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// Tables in the order of the log; of several attempts of one table, the last good one.
    pub tables: Vec<Table>,
    /// Single numbers.
    pub metrics: Vec<Metric>,
    /// Whether the log is whole.
    pub complete: Complete,
    /// What a person should know about the reading; at most [`MAX_WARNINGS`], then only counted.
    pub warnings: Vec<Warning>,
    /// Warnings beyond [`MAX_WARNINGS`].
    pub warnings_left_out: u64,
    /// Which MPI, fabric, hosts and ranks the log shows.
    pub evidence: Evidence,
}

/// The most warnings kept of one log, so that a noisy log stays within bounded memory.
pub const MAX_WARNINGS: usize = 200;

/// Lines that are no part of an output: the first are named, the others counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noise(u64);

/// The most lines of noise that are named.
const MAX_NOISE: u64 = 20;

impl Noise {
    /// Takes a line.
    pub(crate) fn line(&mut self, line: u64, text: &str, parsed: &mut Parsed) {
        let text = text.trim();
        self.0 += u64::from(!text.is_empty());
        if self.0 <= MAX_NOISE && !text.is_empty() {
            let text: String = text.chars().take(120).collect();
            parsed.warn(line, format!("not of the output: {text}"));
        }
    }

    /// Says how many lines were not named.
    pub(crate) fn count(&self, parsed: &mut Parsed) {
        if self.0 > MAX_NOISE {
            parsed.warn(0, format!("{} more lines are not of the output", self.0 - MAX_NOISE));
        }
    }
}

/// Whether a log is whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Complete {
    /// Everything that was asked for is there, undamaged.
    Yes,
    /// Something is cut, damaged or missing; what is given is safe, but it is not all.
    No,
    /// Nothing is damaged, but the log alone does not say where it should end.
    #[default]
    Unknown,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub enum Better {
    /// Times, losses.
    Lower,
    /// Rates, ratings.
    Higher,
}

/// One number with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Snake-case name, as in the application's docs page.
    pub name: String,
    /// What tells apart metrics of one name, e.g. job and direction of fio.
    pub labels: Vec<(&'static str, String)>,
    /// The number in `unit`; always finite.
    pub value: f64,
    /// Unit as printed in tables; empty for a plain count.
    pub unit: Cow<'static, str>,
    /// Which way is better; `None` for a fact (ranks, iterations).
    pub better: Option<Better>,
    /// 1-based line that gave the number.
    pub line: u64,
}

/// One table of one program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Program name, e.g. `osu_latency`; `None` if the title is not one we know.
    pub benchmark: Option<String>,
    /// The title as printed, without marks.
    pub title: String,
    /// Version as printed in the title.
    pub version: Option<String>,
    /// What was printed between title and columns, e.g. `datatype`, `window_creation`, `pairs`.
    pub attributes: BTreeMap<String, String>,
    /// The columns after the size; a table without sizes has `sized == false`.
    pub columns: Vec<Column>,
    /// Whether rows begin with a message size in bytes.
    pub sized: bool,
    /// Rows that can be trusted, in order.
    pub rows: Vec<Row>,
    /// Sizes whose row is damaged, contradicted or missing between others.
    pub damaged: Vec<Damage>,
    /// The program's own check of its data: from its column, or from an error it printed.
    pub validation: Option<Validation>,
    /// How many tables of this kind the log holds; this is the one that counts.
    pub attempts: u32,
    /// 1-based line of the title.
    pub line: u64,
}

/// What a program found when it checked its own data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validation {
    /// Every row passed.
    Passed,
    /// A row failed, or an error was printed.
    Failed,
}

/// One column of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Short name, e.g. `avg`, `p99`, `overlap_pct`.
    pub name: String,
    /// Unit, e.g. `us`, `MB/s` (10^6 bytes); empty for counts.
    pub unit: Cow<'static, str>,
    /// Which way is better, if either.
    pub better: Option<Better>,
}

/// One row of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// 1-based line.
    pub line: u64,
    /// Message size in bytes, for a sized table.
    pub size: Option<u64>,
    /// One cell per column.
    pub cells: Vec<Cell>,
}

/// What stands in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell {
    /// A finite number.
    Number(f64),
    /// `nan`, `inf` or the like was printed: never a number.
    NotNumeric,
    /// The program's own validation passed.
    Passed,
    /// The program's own validation failed.
    Failed,
}

/// A row that is not data although something of it was there, or should have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// 1-based line; of a missing row, the line after the gap.
    pub line: u64,
    /// Message size, where it could be read.
    pub size: Option<u64>,
}

/// Something a person should know about the reading of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// 1-based line; 0 speaks of the whole log.
    pub line: u64,
    /// One sentence.
    pub message: String,
}

impl Cell {
    /// The number, if it is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(value),
            Self::NotNumeric | Self::Passed | Self::Failed => None,
        }
    }
}

impl Table {
    /// The position of the column of that name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The number at a message size (`None` for a table without sizes) in the column of that name.
    pub fn at(&self, size: Option<u64>, column: &str) -> Option<f64> {
        let index = self.column(column)?;
        let row = self.rows.iter().find(|row| row.size == size)?;
        row.cells.get(index)?.number()
    }

    /// Sizes (or lines, for a table without sizes) at which something that is not a number was printed.
    pub fn not_numeric(&self) -> Vec<u64> {
        let strange = |row: &&Row| row.cells.contains(&Cell::NotNumeric);
        self.rows.iter().filter(strange).map(|row| row.size.unwrap_or(row.line)).collect()
    }

    /// Sums up the validation of the rows; an error that was printed outweighs them.
    pub(crate) fn set_validation(&mut self, error: Option<String>) {
        let mut cells = self.rows.iter().flat_map(|row| &row.cells);
        let failed = error.is_some() || cells.clone().any(|cell| *cell == Cell::Failed);
        let passed = cells.any(|cell| *cell == Cell::Passed);
        self.validation = match (failed, passed) {
            (true, _) => Some(Validation::Failed),
            (false, true) => Some(Validation::Passed),
            (false, false) => None,
        };
        if let Some(error) = error {
            self.attributes.insert("validation_error".to_owned(), error);
        }
    }

    /// Whether every row is there and holds only what the columns promise.
    pub fn is_sound(&self) -> bool {
        !self.rows.is_empty() && self.damaged.is_empty() && self.not_numeric().is_empty()
    }
}

impl Parsed {
    /// The metric of that name: the one without labels, else the only one.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        let mut of_name = self.metrics.iter().filter(|metric| metric.name == name);
        let total = of_name.clone().find(|metric| metric.labels.is_empty());
        let first = of_name.next()?;
        total.or_else(|| of_name.next().is_none().then_some(first))
    }

    /// The table of that program.
    pub fn table(&self, benchmark: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.benchmark.as_deref() == Some(benchmark))
    }

    pub(crate) fn warn(&mut self, line: u64, message: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            let message = printable(message.into());
            self.warnings.push(Warning { line, message });
        } else {
            self.warnings_left_out += 1;
        }
    }
}

/// A text without control characters, which do something to a terminal instead of being read.
pub(crate) fn printable(text: String) -> String {
    if !text.contains(char::is_control) {
        return text;
    }
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
