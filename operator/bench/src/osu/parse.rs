//! Reads the output of OSU micro-benchmarks: any number of tables, from any version, with other output between the lines.

use std::collections::BTreeMap;

use super::attributes;
use super::columns::{COLUMNS, windows};
use super::titles::{self, Title};
use crate::attempts;
use crate::evidence::Evidence;
use crate::expect::{Expectation, ExpectedTable};
use crate::failure::{ParseError, Reason};
use crate::labels::{Found, Header};
use crate::line::Line;
use crate::parsed::{Better, Noise, Parsed, Table};
use crate::prefix::{self, Owner};
use crate::rows::{Open, Steps, Taken};

/// Tables one log may hold; more is not a log of this program.
const MAX_TABLES: usize = 1000;

/// Reads one log.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    expected: Vec<ExpectedTable>,
    parsed: Parsed,
    state: State,
    owner: Option<Owner>,
    title: Option<(Title, u64)>,
    attributes: BTreeMap<String, String>,
    before_title: BTreeMap<String, String>,
    validation_error: Option<String>,
    done: Vec<Table>,
    error: Option<ParseError>,
    last_text: String,
    noise: Noise,
}

#[derive(Debug, Clone)]
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
            attributes: BTreeMap::new(),
            before_title: BTreeMap::new(),
            validation_error: None,
            done: Vec::new(),
            error: None,
            last_text: String::new(),
            noise: Noise::default(),
        }
    }

    /// Takes the next line.
    pub(crate) fn line(&mut self, line: Line<'_>) {
        if self.error.is_some() || self.begins(line) {
            return;
        }
        let (_, unmarked) = prefix::split(line.text);
        // Some programs say how many threads they use before they say what they are.
        if attributes::is_before_title(unmarked) {
            return attributes::read(unmarked, &mut self.before_title);
        }
        let Some(text) = prefix::of(self.owner.as_ref(), line.text) else {
            return;
        };
        let line = Line { text, ..line };
        self.validation_error(text);
        match &mut self.state {
            State::Before => self.before(text),
            State::Titled => self.metadata(line),
            State::Rows(_) => self.row(line),
        }
    }

    fn before(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.last_text = shortened(text);
        }
    }

    fn validation_error(&mut self, text: &str) {
        if text.contains("DATA VALIDATION ERROR") || text.contains("fail data validation") {
            self.validation_error = Some(shortened(text));
        }
    }

    /// Whether the line is a title, which begins a new table whoever owned the last one.
    fn begins(&mut self, line: Line<'_>) -> bool {
        let Some((owner, title)) = title_of(line.text) else { return false };
        self.close();
        self.owner = owner;
        self.attributes = std::mem::take(&mut self.before_title);
        if let Some(model) = &title.model {
            self.attributes.insert("model".to_owned(), model.clone());
        }
        if title.benchmark.is_none() {
            self.parsed.warn(line.number, format!("the title '{}' is not known", title.text));
        }
        self.title = Some((title, line.number));
        self.state = State::Titled;
        true
    }

    fn metadata(&mut self, line: Line<'_>) {
        match self.header(line.text) {
            Found::Header(header) => self.open(header),
            Found::Unknown(label) => self.unknown_column(line.number, &label),
            Found::Other if line.ended && self.sentence(line) => {}
            Found::Other => attributes::read(line.text, &mut self.attributes),
        }
    }

    fn header(&self, text: &str) -> Found {
        // Looked at for every line of noise, so what cannot be one is told quickly.
        if !text.contains('#') && !text.contains("(us)") {
            return Found::Other;
        }
        let profile = self.attributes.get("profile").map_or("", String::as_str);
        windows(text, profile).map_or_else(|| COLUMNS.read(text), Found::Header)
    }

    /// Takes a program that prints one sentence instead of a table.
    fn sentence(&mut self, line: Line<'_>) -> bool {
        let Some(table) = self.titled() else { return false };
        let Some(table) = super::startup::read(line.text, line.number, &table) else {
            return false;
        };
        self.done.push(table);
        self.state = State::Before;
        true
    }

    fn row(&mut self, line: Line<'_>) {
        match self.header(line.text) {
            Found::Header(header) => return self.open(header),
            Found::Unknown(label) if line.text.starts_with('#') => {
                return self.unknown_column(line.number, &label);
            }
            Found::Unknown(_) | Found::Other => {}
        }
        if attributes::is_one(line.text) {
            return attributes::read(line.text, &mut self.attributes);
        }
        let State::Rows(open) = &mut self.state else {
            return;
        };
        let is_worth_a_word = !line.text.trim().is_empty() && !line.text.starts_with("hpcops: ");
        if open.line(line) == Taken::Noise && is_worth_a_word {
            self.noise.line(line.number, line.text, &mut self.parsed);
        }
    }

    fn unknown_column(&mut self, line: u64, label: &str) {
        let detail = format!("column '{}' is not known", shortened(label));
        self.error = Some(ParseError::new(line, Reason::UnknownColumn, detail));
    }

    /// Begins a table under the last title; another data type prints columns again without a title.
    fn open(&mut self, header: Header) {
        if let State::Rows(open) = std::mem::replace(&mut self.state, State::Titled) {
            self.close_rows(*open);
        }
        let Some(table) = self.titled() else { return };
        let header = self.relabelled(header, table.line);
        self.state = State::Rows(Box::new(Open::new(table, header, Steps::Doubling)));
    }

    /// An empty table under the last title.
    fn titled(&self) -> Option<Table> {
        let (title, line) = self.title.clone()?;
        let Title { text: title, benchmark, version, .. } = title;
        let attributes = self.attributes.clone();
        Some(Table { benchmark, title, version, attributes, line, attempts: 1, ..Table::default() })
    }

    /// mpi4py's port labels bandwidth as `Latency [us]`; its source computes MB/s.
    fn relabelled(&mut self, mut header: Header, line: u64) -> Header {
        let Some((title, _)) = &self.title else { return header };
        let bandwidth = matches!(title.benchmark.as_deref(), Some("osu_bw" | "osu_bibw"));
        if title.port && bandwidth {
            for (column, _) in header.columns.iter_mut().filter(|(column, _)| column.unit == "us") {
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
        self.done.extend(self.titled());
    }

    fn close_rows(&mut self, open: Open) {
        let (line, commas) = (open.last_line(), open.has_commas());
        if commas {
            self.parsed.warn(line, "numbers are written with a decimal comma");
        }
        match open.finish() {
            Ok(mut table) => {
                table.set_validation(self.validation_error.take());
                self.done.push(table);
            }
            Err(mixed) => self.error = Some(mixed.into()),
        }
    }

    /// Ends the log.
    pub(crate) fn finish(mut self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        self.close();
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.done.is_empty() {
            let detail = format!("no OSU header; the output ends with: {}", self.last_text);
            return Err(ParseError::new(lines, Reason::NotFound, detail));
        }
        if let Some(error) = attempts::nothing(&self.done) {
            return Err(error);
        }
        let mut parsed = self.parsed;
        self.noise.count(&mut parsed);
        parsed.tables = attempts::choose(self.done, &mut parsed.warnings);
        parsed.complete =
            attempts::complete(&mut parsed, &self.expected, evidence, false, Vec::new());
        Ok(parsed)
    }
}

/// A title and whose it is: behind a launcher's mark, or behind any text that then stands before every line.
fn title_of(text: &str) -> Option<(Option<Owner>, Title)> {
    if !text.contains('#') {
        return None;
    }
    if let Some(title) = titles::read(text) {
        return Some((None, title));
    }
    let (mark, rest) = prefix::split(text);
    let known = mark.and_then(|mark| Some((mark, titles::read(rest)?)));
    let literal = || {
        let (mark, rest) = prefix::split_before(text, &["# OSU ", "# MPI "])?;
        Some((mark, titles::read(rest)?))
    };
    let (mark, title) = known.or_else(literal)?;
    Some((Some(mark.owner()), title))
}

/// A text for a message: its first 120 characters.
fn shortened(text: &str) -> String {
    text.trim().chars().take(120).collect()
}

#[cfg(test)]
mod tests;
