//! Columns found by their labels; a label that is not known is an error, never a guess.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::line::pattern;
use crate::parsed::{Better, Column};

/// What kind of token stands in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Message size: digits.
    Size,
    /// Digits.
    Count,
    /// A number with a fixed number of decimals.
    Number,
    /// `Pass` or `Fail`.
    Validation,
}

/// One label a program prints over a column.
pub(crate) struct Label {
    pattern: &'static str,
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    better: Option<Better>,
}

/// A column of measured numbers. What the pattern captures is added to the name.
pub(crate) const fn number(
    pattern: &'static str,
    name: &'static str,
    unit: &'static str,
    better: Better,
) -> Label {
    let better = Some(better);
    Label { pattern, name, kind: Kind::Number, unit, better }
}

/// A column that says something about the row and measures nothing.
pub(crate) const fn fact(
    pattern: &'static str,
    name: &'static str,
    unit: &'static str,
    kind: Kind,
) -> Label {
    Label { pattern, name, kind, unit, better: None }
}

/// The labels of a family of programs.
pub(crate) struct Labels {
    labels: &'static [Label],
    patterns: LazyLock<Vec<Regex>>,
}

/// A column header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    /// Whether the first column is the size; it is not among `columns`.
    pub sized: bool,
    /// The columns after the size, with what their tokens look like.
    pub columns: Vec<(Column, Kind)>,
}

/// What a line is, seen as a header.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// A header, all of it known.
    Header(Header),
    /// It begins like one and goes on with this.
    Unknown(String),
    /// Something else.
    Other,
}

impl Labels {
    /// `compile` makes the patterns of `labels`: a static cannot make them of its own fields.
    pub(crate) const fn new(labels: &'static [Label], compile: fn() -> Vec<Regex>) -> Self {
        Self { labels, patterns: LazyLock::new(compile) }
    }

    /// Reads a line as a header. Without a leading `#` (old `osu_ibarrier`) it is one only if all of it is known.
    pub(crate) fn read(&self, line: &str) -> Found {
        let text = line.trim();
        let mut rest = text;
        let mut columns = Vec::new();
        while !rest.is_empty() {
            let Some((column, kind, after)) = self.label(rest) else {
                let known = !columns.is_empty() && text.starts_with('#');
                return if known { Found::Unknown(rest.to_owned()) } else { Found::Other };
            };
            columns.push((column, kind));
            rest = after.trim_start();
        }
        header(columns)
    }

    /// The longest label a text begins with, and what follows it.
    fn label<'a>(&self, text: &'a str) -> Option<(Column, Kind, &'a str)> {
        let candidates = self.labels.iter().zip(self.patterns.iter());
        let found =
            candidates.filter_map(|(label, pattern)| Some((label, pattern.captures(text)?)));
        let (label, captures) = found.max_by_key(|(_, captures)| captures[0].len())?;
        let part = captures.get(1).map_or("", |part| part.as_str());
        let name = format!("{}{part}", label.name);
        let column = Column { name, unit: Cow::Borrowed(label.unit), better: label.better };
        Some((column, label.kind, text.get(captures[0].len()..)?))
    }
}

/// The patterns of labels, anchored; a `#` may stand before each of them.
pub(crate) fn compile(labels: &'static [Label]) -> Vec<Regex> {
    let anchored = |label: &Label| format!("^(?:# *)?(?:{})", label.pattern);
    labels.iter().map(|label| pattern(&anchored(label))).collect()
}

fn header(mut columns: Vec<(Column, Kind)>) -> Found {
    let sized = columns.first().is_some_and(|(_, kind)| *kind == Kind::Size);
    if sized {
        columns.remove(0);
    }
    if columns.is_empty() { Found::Other } else { Found::Header(Header { sized, columns }) }
}
