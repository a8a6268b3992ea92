//! Rows of one table: which line is one, which was one, and which only looks like one.
//!
//! Sizes double from row to row. That one rule tells a row from a number in a warning, finds rows that are missing, and
//! shows where two outputs ran into each other. What contradicts it is never chosen between: it is reported as damaged.

use crate::failure::{ParseError, Reason};
use crate::labels::{Header, Kind};
use crate::line::Line;
use crate::number::{Printed, printed};
use crate::parsed::{Cell, Damage, Row, Table};

/// A table on its way in.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub table: Table,
    kinds: Vec<Kind>,
    steps: Steps,
    forms: Vec<Form>,
    suspects: Vec<Damage>,
    fragments: Vec<u64>,
}

/// How sizes follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steps {
    /// Each is the double of the last; 1 follows 0.
    Doubling,
    /// The same, but any size may follow 0.
    DoublingFromAny,
    /// Each is larger than the last: sizes a user listed.
    Increasing,
}

/// How a row's numbers are written.
#[derive(Debug, Clone)]
struct Form {
    line: u64,
    size: Option<u64>,
    decimals: Vec<Option<usize>>,
    comma: Option<bool>,
}

/// What a line is to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Data, or what is left of it.
    Row,
    /// Nothing to do with the table.
    Noise,
}

/// Two rows of one table write numbers in different ways.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MixedCommas(pub u64);

impl From<MixedCommas> for ParseError {
    fn from(MixedCommas(line): MixedCommas) -> Self {
        Self::new(line, Reason::Malformed, "decimal commas and decimal points in one table")
    }
}

impl Open {
    pub fn new(table: Table, header: Header, steps: Steps) -> Self {
        let (columns, kinds) = header.columns.into_iter().unzip();
        let table = Table { sized: header.sized, columns, ..table };
        Self { table, kinds, steps, forms: Vec::new(), suspects: Vec::new(), fragments: Vec::new() }
    }

    /// A table of the same columns without a row.
    pub fn empty(&self) -> Self {
        let table = Table { rows: Vec::new(), damaged: Vec::new(), ..self.table.clone() };
        Self {
            table,
            kinds: self.kinds.clone(),
            steps: self.steps,
            forms: Vec::new(),
            suspects: Vec::new(),
            fragments: Vec::new(),
        }
    }

    /// Notes a row that the program itself could not measure.
    pub fn lost(&mut self, line: u64, size: Option<u64>) {
        self.suspects.push(Damage { line, size });
    }

    /// The line of the last row, or of the title.
    pub fn last_line(&self) -> u64 {
        self.table.rows.last().map_or(self.table.line, |row| row.line)
    }

    /// Takes the next line.
    pub fn line(&mut self, line: Line<'_>) -> Taken {
        let tokens: Vec<&str> = line.text.split_whitespace().collect();
        let Some((row, form)) = self.read(&tokens, line.number) else {
            return self.suspect(&tokens, line);
        };
        if line.ended && line.whole {
            self.place(row, form);
        } else {
            // The last number may go on behind the cut.
            self.table.damaged.push(Damage { line: row.line, size: row.size });
        }
        Taken::Row
    }

    fn read(&self, tokens: &[&str], line: u64) -> Option<(Row, Form)> {
        let size = self.table.sized.then(|| tokens.first().and_then(|token| whole(token)));
        let size = match size {
            Some(None) => return None,
            Some(found) => found,
            None => None,
        };
        let tokens = tokens.get(usize::from(self.table.sized)..)?;
        if tokens.len() != self.kinds.len() {
            return None;
        }
        let mut form = Form { line, size, decimals: Vec::new(), comma: None };
        let mut cells = Vec::with_capacity(tokens.len());
        for (token, kind) in tokens.iter().zip(&self.kinds) {
            cells.push(cell(token, *kind, &mut form)?);
        }
        Some((Row { line, size, cells }, form))
    }

    /// Puts a row where the sizes allow it.
    fn place(&mut self, row: Row, form: Form) {
        let Some(size) = row.size else {
            return self.place_only(row, form);
        };
        let Some(last) = self.table.rows.last().and_then(|row| row.size) else {
            return self.push(row, form);
        };
        match self.steps.missing(last, size) {
            Some(missing) => {
                self.suspects.extend(
                    missing.into_iter().map(|size| Damage { line: row.line, size: Some(size) }),
                );
                self.push(row, form);
            }
            None => self.contradict(size, row.line),
        }
    }

    /// A table without sizes has exactly one row.
    fn place_only(&mut self, row: Row, form: Form) {
        if let Some(first) = self.table.rows.pop() {
            self.forms.clear();
            self.suspects.push(Damage { line: first.line, size: None });
        }
        if self.suspects.is_empty() {
            self.push(row, form);
        } else {
            self.suspects.push(Damage { line: row.line, size: None });
        }
    }

    fn push(&mut self, row: Row, form: Form) {
        self.table.rows.push(row);
        self.forms.push(form);
    }

    /// A size that was there before. One of the rows from there on is not of this table, and nothing says which: none of
    /// them is believed. A size that belongs to no doubling is only a line that is not believed.
    fn contradict(&mut self, size: u64, line: u64) {
        let first = self.table.rows.first().and_then(|row| row.size);
        let belongs = |first: u64| first >= size || self.steps.missing(first, size).is_some();
        if !first.is_some_and(belongs) {
            return self.table.damaged.push(Damage { line, size: None });
        }
        let (kept, doubtful) =
            std::mem::take(&mut self.table.rows).into_iter().partition(|row| row.size < Some(size));
        self.table.rows = kept;
        self.suspects.retain(|suspect| suspect.size < Some(size));
        let doubtful: Vec<Row> = doubtful;
        self.table
            .damaged
            .extend(doubtful.iter().map(|row| Damage { line: row.line, size: row.size }));
        self.table.damaged.push(Damage { line, size: Some(size) });
    }

    /// Looks for what is left of a row: a size in front of a gap or of too few numbers, or numbers alone on a line.
    fn suspect(&mut self, tokens: &[&str], line: Line<'_>) -> Taken {
        let Some(first) = tokens.first() else { return Taken::Noise };
        let is_numeric = tokens.iter().all(|token| printed(token).is_some());
        let size = whole(first).filter(|_| self.table.sized);
        let start = line.text.len() - line.text.trim_start().len();
        let gap = line.text.get(start + first.len()..).is_some_and(|rest| rest.starts_with("  "));
        let last = self.table.rows.last().and_then(|row| row.size);
        let follows =
            |size: &u64| last.is_none_or(|last| self.steps.missing(last, *size).is_some());
        match size.filter(follows).filter(|_| gap) {
            Some(size) if tokens.len() > 1 || !is_numeric || !line.ended => {
                self.suspects.push(Damage { line: line.number, size: Some(size) });
            }
            Some(_) | None if is_numeric => self.fragment(line),
            Some(_) | None => return Taken::Noise,
        }
        Taken::Row
    }

    /// Numbers alone on a line: part of a row that was cut in two, or none of our business. At the very end they are the
    /// beginning of a row.
    fn fragment(&mut self, line: Line<'_>) {
        if line.ended {
            self.fragments.push(line.number);
        } else {
            self.table.damaged.push(Damage { line: line.number, size: None });
        }
    }

    /// Ends the table.
    pub fn finish(mut self) -> Result<Table, MixedCommas> {
        self.one_decimal_mark()?;
        self.fixed_decimals();
        let contradicted: Vec<_> = self.table.damaged.iter().map(|damage| damage.size).collect();
        self.table.rows.retain(|row| row.size.is_none() || !contradicted.contains(&row.size));
        let there = |size: Option<u64>| {
            size.is_some() && self.table.rows.iter().any(|row| row.size == size)
        };
        self.table.damaged.extend(self.suspects.into_iter().filter(|suspect| !there(suspect.size)));
        if !self.table.damaged.is_empty() {
            self.table
                .damaged
                .extend(self.fragments.into_iter().map(|line| Damage { line, size: None }));
        }
        self.table.damaged.sort_by_key(|damage| (damage.size, damage.line));
        self.table.damaged.dedup_by(|next, first| next.size.is_some() && next.size == first.size);
        Ok(self.table)
    }

    fn one_decimal_mark(&self) -> Result<(), MixedCommas> {
        let mut marks = self.forms.iter().filter_map(|form| Some((form.line, form.comma?)));
        let Some((_, first)) = marks.next() else {
            return Ok(());
        };
        marks.find(|(_, comma)| *comma != first).map_or(Ok(()), |(line, _)| Err(MixedCommas(line)))
    }

    /// Whether the numbers are written with a decimal comma.
    pub fn has_commas(&self) -> bool {
        self.forms.iter().any(|form| form.comma == Some(true))
    }

    /// Programs print a fixed number of decimals: a row with fewer was cut, and the rest of its number is elsewhere.
    fn fixed_decimals(&mut self) {
        let most: Vec<_> =
            (0..self.kinds.len()).map(|column| self.usual_decimals(column)).collect();
        let odd = |form: &&Form| {
            form.decimals.iter().zip(&most).any(|(has, usual)| has.is_some() && has != usual)
        };
        let cut: Vec<_> =
            self.forms.iter().filter(odd).map(|form| (form.line, form.size)).collect();
        for (line, size) in cut {
            self.table.rows.retain(|row| row.line != line);
            self.table.damaged.push(Damage { line, size });
        }
    }

    fn usual_decimals(&self, column: usize) -> Option<usize> {
        let seen: Vec<usize> =
            self.forms.iter().filter_map(|form| *form.decimals.get(column)?).collect();
        let frequency = |decimals: usize| seen.iter().filter(|other| **other == decimals).count();
        seen.iter().copied().max_by_key(|decimals| (frequency(*decimals), *decimals))
    }
}

impl Steps {
    /// Sizes that are missing between two that follow each other; `None` if the second cannot follow the first.
    fn missing(self, last: u64, size: u64) -> Option<Vec<u64>> {
        let free = self == Self::Increasing || (self == Self::DoublingFromAny && last == 0);
        if free {
            return (size > last).then(Vec::new);
        }
        let next = |size: u64| if size == 0 { Some(1) } else { size.checked_mul(2) };
        let below = std::iter::successors(next(last), |size| next(*size));
        let mut missing: Vec<_> = below.take_while(|next| *next <= size).collect();
        (missing.pop() == Some(size)).then_some(missing)
    }
}

fn whole(token: &str) -> Option<u64> {
    token.bytes().all(|b| b.is_ascii_digit()).then(|| token.parse().ok()).flatten()
}

fn cell(token: &str, kind: Kind, form: &mut Form) -> Option<Cell> {
    let mut decimals = None;
    let cell = match kind {
        Kind::Validation if token == "Pass" => Cell::Passed,
        Kind::Validation if token == "Fail" => Cell::Failed,
        Kind::Validation => return None,
        Kind::Size | Kind::Count => {
            Cell::Number(crate::number::finite(token).filter(|_| whole(token).is_some())?)
        }
        Kind::Number => match printed(token)? {
            Printed::NotNumeric => Cell::NotNumeric,
            Printed::Number { value, decimals: digits, comma } => {
                decimals = Some(digits);
                form.comma = form.comma.or(comma);
                Cell::Number(value)
            }
        },
    };
    form.decimals.push(decimals);
    Some(cell)
}
