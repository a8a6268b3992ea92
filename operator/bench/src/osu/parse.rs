//! Reads the output of OSU micro-benchmarks: any number of tables, from any version, with other output between the lines.

use super::columns::{self, Found, Header};
use super::table::{MixedCommas, Open, Taken};
use super::titles::{self, Title};
use crate::evidence::Evidence;
use crate::expect::{Expectation, ExpectedTable};
use crate::failure::{ParseError, Reason};
use crate::line::Line;
use crate::parsed::{Better, Parsed, Table};
use crate::prefix::{self, Owner};

/// Tables one log may hold; more is not a log of this program.
const MAX_TABLES: usize = 1000;
/// Noise lines that are worth a warning each.
const MAX_NOISE: usize = 20;

/// Reads one log.
#[derive(Debug)]
pub(crate) struct Reader {
    expected: Vec<ExpectedTable>,
    parsed: Parsed,
    state: State,
    owner: Option<Owner>,
    title: Option<(Title, u64)>,
    attributes: std::collections::BTreeMap<String, String>,
    done: Vec<Table>,
    error: Option<ParseError>,
    last_text: String,
    noise: usize,
}

#[derive(Debug)]
enum State {
    /// No title yet.
    Before,
    /// After a title, before its columns.
    Titled,
    /// Inside a table.
    Rows(Box<Open>),
}

impl Reader {
    pub(crate) fn new(expected: &Expectation) -> Self {
        Self {
            expected: expected.tables.clone(),
            parsed: Parsed::default(),
            state: State::Before,
            owner: None,
            title: None,
            attributes: std::collections::BTreeMap::default(),
            done: Vec::new(),
            error: None,
            last_text: String::new(),
            noise: 0,
        }
    }

    /// Takes the next line.
    pub(crate) fn line(&mut self, line: Line<'_>) {
        if self.error.is_some() || self.begins(line) {
            return;
        }
        let Some(text) = prefix::of(self.owner.as_ref(), line.text) else {
            return;
        };
        let line = Line { text, ..line };
        if text.contains("DATA VALIDATION ERROR") {
            self.attributes
                .insert("validation_error".to_owned(), text.trim().to_owned());
        }
        match &mut self.state {
            State::Before => {
                if !text.trim().is_empty() {
                    self.last_text = shortened(text);
                }
            }
            State::Titled => self.metadata(line),
            State::Rows(_) => self.row(line),
        }
    }

    /// Whether the line is a title, which begins a new table whoever owned the last one.
    fn begins(&mut self, line: Line<'_>) -> bool {
        let (mark, rest) = prefix::split(line.text);
        let (owner, title) = match (titles::read(line.text), mark) {
            (Some(title), _) => (None, title),
            (None, Some(mark)) => match titles::read(rest) {
                Some(title) => (Some(mark.owner()), title),
                None => return false,
            },
            (None, None) => return false,
        };
        self.close();
        self.owner = owner;
        self.attributes.clear();
        if let Some(model) = &title.model {
            self.attributes.insert("model".to_owned(), model.clone());
        }
        if title.benchmark.is_none() {
            self.parsed.warn(
                line.number,
                format!("the title '{}' is not known", title.text),
            );
        }
        self.title = Some((title, line.number));
        self.state = State::Titled;
        true
    }

    fn metadata(&mut self, line: Line<'_>) {
        match columns::read(line.text) {
            Found::Header(header) => self.open(header),
            Found::Unknown(label) => self.unknown_column(line.number, &label),
            Found::Other => super::attributes::read(line.text, &mut self.attributes),
        }
    }

    fn row(&mut self, line: Line<'_>) {
        if let Found::Header(header) = columns::read(line.text) {
            return self.open(header);
        }
        if super::attributes::is_one(line.text) {
            return super::attributes::read(line.text, &mut self.attributes);
        }
        let State::Rows(open) = &mut self.state else {
            return;
        };
        if open.line(line) == Taken::Noise && !line.text.trim().is_empty() {
            self.noise += 1;
            if self.noise <= MAX_NOISE {
                self.parsed.warn(
                    line.number,
                    format!("not of the table: {}", shortened(line.text)),
                );
            }
        }
    }

    fn unknown_column(&mut self, line: u64, label: &str) {
        let detail = format!("column '{}' is not known", shortened(label));
        self.error = Some(ParseError::new(line, Reason::UnknownColumn, detail));
    }

    /// Begins a table under the last title; another data type prints columns again without a title.
    fn open(&mut self, header: Header) {
        self.close();
        let Some((title, line)) = self.title.clone() else {
            return;
        };
        let header = self.relabelled(header, &title, line);
        let table = Table {
            benchmark: title.benchmark,
            title: title.text,
            version: title.version,
            attributes: self.attributes.clone(),
            line,
            attempts: 1,
            ..Table::default()
        };
        self.state = State::Rows(Box::new(Open::new(table, header)));
    }

    /// mpi4py's port labels bandwidth as `Latency [us]`; its source computes MB/s.
    fn relabelled(&mut self, mut header: Header, title: &Title, line: u64) -> Header {
        let bandwidth = matches!(title.benchmark.as_deref(), Some("osu_bw" | "osu_bibw"));
        if title.port && bandwidth {
            for (column, _) in header
                .columns
                .iter_mut()
                .filter(|(column, _)| column.unit == "us")
            {
                "bandwidth".clone_into(&mut column.name);
                column.unit = "MB/s".into();
                column.better = Some(Better::Higher);
            }
            let message = "this port labels bandwidth as latency in us; read as MB/s, which is what it computes";
            self.parsed.warn(line, message);
        }
        header
    }

    /// Ends the table that is open, or notes a title that had none.
    fn close(&mut self) {
        match std::mem::replace(&mut self.state, State::Before) {
            State::Before => {}
            State::Titled => self.empty(),
            State::Rows(open) => self.close_rows(*open),
        }
        if self.done.len() > MAX_TABLES {
            let detail = format!("more than {MAX_TABLES} tables");
            self.error = Some(ParseError::new(
                self.done.last().map_or(0, |table| table.line),
                Reason::TooLarge,
                detail,
            ));
        }
    }

    fn empty(&mut self) {
        let Some((title, line)) = self.title.clone() else {
            return;
        };
        let (benchmark, version) = (title.benchmark, title.version);
        self.done.push(Table {
            benchmark,
            version,
            title: title.text,
            line,
            ..Table::default()
        });
    }

    fn close_rows(&mut self, open: Open) {
        let (line, commas) = (open.last_line(), open.has_commas());
        if commas {
            self.parsed
                .warn(line, "numbers are written with a decimal comma");
        }
        match open.finish() {
            Ok(mut table) => {
                table.attributes.clone_from(&self.attributes);
                table.attributes.remove("validation_error");
                table.set_validation(self.attributes.remove("validation_error"));
                self.done.push(table);
            }
            Err(MixedCommas(line)) => {
                let detail = "decimal commas and decimal points in one table";
                self.error = Some(ParseError::new(line, Reason::Malformed, detail));
            }
        }
    }

    /// Ends the log.
    pub(crate) fn finish(mut self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        self.close();
        if let Some(error) = self.error {
            return Err(error);
        }
        let Some(first) = self.done.first() else {
            let detail = format!("no OSU header; the output ends with: {}", self.last_text);
            return Err(ParseError::new(lines, Reason::NotFound, detail));
        };
        if self.done.iter().all(|table| table.rows.is_empty()) {
            let detail = format!("'{}' has no row of data", first.title);
            return Err(ParseError::new(first.line, Reason::NoData, detail));
        }
        let mut parsed = self.parsed;
        parsed.tables = super::attempts::choose(self.done, &mut parsed.warnings);
        parsed.complete = super::attempts::complete(&mut parsed, &self.expected, evidence);
        Ok(parsed)
    }
}

/// A text for a message: its first 120 characters.
fn shortened(text: &str) -> String {
    text.trim().chars().take(120).collect()
}

#[cfg(test)]
mod tests;
