//! What a user says of a program's output, checked before anything runs.

use std::borrow::Cow;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

use super::pointer::Pointer;
use crate::parsed::Better;

/// The most metrics, and the most patterns of a kind.
const MAX_PATTERNS: usize = 64;
/// The largest compiled pattern, in bytes: a pattern like `(a{1000}){1000}` is refused, not run.
const MAX_COMPILED: usize = 1 << 20;

/// What the output of a program means.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Declaration {
    /// Numbers to find, 1 to 64; each must be there.
    pub metrics: Vec<Declared>,
    /// Regular expressions of which each must be found in a line.
    #[serde(default)]
    pub sanity: Vec<String>,
    /// Regular expressions of which none may be found in a line.
    #[serde(default)]
    pub failure: Vec<String>,
}

/// One number.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Declared {
    /// Lower-case letters, digits and underscores, 1 to 63.
    pub name: String,
    /// As it is to be shown; empty for a count.
    pub unit: Cow<'static, str>,
    /// Which way is better; left out for a fact.
    pub better: Option<Better>,
    /// Where it stands.
    pub source: Source,
    /// Which one counts if it stands there more than once.
    pub pick: Pick,
}

/// One number as a user writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    unit: String,
    better: Option<Better>,
    regex: Option<String>,
    json_pointer: Option<String>,
    #[serde(default)]
    pick: Pick,
}

impl TryFrom<Written> for Declared {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let source = match (written.regex, written.json_pointer) {
            (Some(regex), None) => Source::Regex(regex),
            (None, Some(pointer)) => Source::JsonPointer(pointer),
            (None, None) | (Some(_), Some(_)) => {
                return Err("give exactly one of regex and jsonPointer");
            }
        };
        let Written { name, unit, better, pick, .. } = written;
        Ok(Self { name, unit: unit.into(), better, source, pick })
    }
}

/// Where a number stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// In a line, as the group `value` or the only group of a regular expression.
    Regex(String),
    /// In a JSON document, at an RFC 6901 pointer.
    JsonPointer(String),
}

/// Which of several numbers counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Pick {
    /// There is only one; a second one with another value is an error.
    #[default]
    Only,
    /// The first.
    First,
    /// The last.
    Last,
}

/// Why a declaration is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DeclarationError {
    /// Too few or too many.
    #[error("{count} {what}: 1 to 64 metrics and at most 64 patterns of a kind are allowed")]
    Count {
        /// Metrics, sanity or failure patterns.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// A name that cannot be one.
    #[error(
        "metric name {name:?}: use 1 to 63 lower-case letters, digits and underscores, each name once"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A pattern that cannot be compiled, or is too large.
    #[error("pattern {pattern:?} cannot be used")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        #[source]
        source: Box<regex::Error>,
    },
    /// A pattern that does not say which part is the number.
    #[error("pattern {pattern:?} must have one group, or one named value: (?<value>...)")]
    Group {
        /// The pattern.
        pattern: String,
    },
    /// A pointer that is none.
    #[error("JSON pointer {pointer:?} must be like /jobs/0/bw")]
    Pointer {
        /// The pointer.
        pointer: String,
    },
}

/// A declaration that can be used.
#[derive(Debug, Clone)]
pub struct Command(Arc<Compiled>);

#[derive(Debug)]
pub(super) struct Compiled {
    declaration: Declaration,
    pub metrics: Vec<Finder>,
    pub sanity: Vec<Regex>,
    pub failure: Vec<Regex>,
}

/// How one number is found.
#[derive(Debug)]
pub(super) enum Finder {
    /// A pattern, and the index of the group that is the number.
    Line(Regex, usize),
    /// A place in a document.
    Json(Pointer),
}

impl PartialEq for Command {
    fn eq(&self, other: &Self) -> bool {
        self.0.declaration == other.0.declaration
    }
}

impl Eq for Command {}

impl Command {
    /// Checks and compiles a declaration.
    pub fn new(declaration: Declaration) -> Result<Self, DeclarationError> {
        check_counts(&declaration)?;
        check_names(&declaration)?;
        let finders = declaration.metrics.iter().map(|metric| finder(&metric.source));
        let metrics = finders.collect::<Result<_, _>>()?;
        let sanity =
            declaration.sanity.iter().map(|text| compile(text)).collect::<Result<_, _>>()?;
        let failure =
            declaration.failure.iter().map(|text| compile(text)).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Compiled { declaration, metrics, sanity, failure })))
    }

    /// What was declared.
    pub fn declaration(&self) -> &Declaration {
        &self.0.declaration
    }

    pub(super) fn compiled(&self) -> &Compiled {
        &self.0
    }
}

fn check_counts(declaration: &Declaration) -> Result<(), DeclarationError> {
    let counts = [
        ("metrics", declaration.metrics.len(), 1),
        ("sanity patterns", declaration.sanity.len(), 0),
        ("failure patterns", declaration.failure.len(), 0),
    ];
    let wrong =
        counts.into_iter().find(|(_, count, least)| !(*least..=MAX_PATTERNS).contains(count));
    wrong.map_or(Ok(()), |(what, count, _)| Err(DeclarationError::Count { what, count }))
}

fn check_names(declaration: &Declaration) -> Result<(), DeclarationError> {
    let names: Vec<&str> = declaration.metrics.iter().map(|metric| metric.name.as_str()).collect();
    let part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_name = |name: &str| (1..=63).contains(&name.len()) && name.bytes().all(part);
    let again =
        |index: usize| names.iter().take(index).any(|earlier| names.get(index) == Some(earlier));
    let wrong = names.iter().enumerate().find(|(index, name)| !is_name(name) || again(*index));
    wrong.map_or(Ok(()), |(_, name)| Err(DeclarationError::Name { name: (*name).to_owned() }))
}

fn finder(source: &Source) -> Result<Finder, DeclarationError> {
    match source {
        Source::JsonPointer(text) => {
            let refused = || DeclarationError::Pointer { pointer: text.clone() };
            Pointer::new(text).map(Finder::Json).ok_or_else(refused)
        }
        Source::Regex(text) => {
            let pattern = compile(text)?;
            let named = pattern.capture_names().position(|name| name == Some("value"));
            let only = (pattern.captures_len() == 2).then_some(1);
            let refused = || DeclarationError::Group { pattern: text.clone() };
            let group = named.or(only).ok_or_else(refused)?;
            Ok(Finder::Line(pattern, group))
        }
    }
}

fn compile(text: &str) -> Result<Regex, DeclarationError> {
    let built = RegexBuilder::new(text).size_limit(MAX_COMPILED).build();
    built.map_err(|source| DeclarationError::Pattern {
        pattern: text.to_owned(),
        source: Box::new(source),
    })
}
