//! Why a log gives no numbers: a closed reason, a line, and how far the program came.

use std::fmt;

use crate::evidence::Evidence;
use crate::parsed::printable;

/// A log that is refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("line {line}: {reason}: {detail}")]
pub struct ParseError {
    /// 1-based line that shows the reason; the last line read if something is missing at the end; 0 for an empty log.
    pub line: u64,
    /// The class of the failure.
    pub reason: Reason,
    /// One sentence with what was found.
    pub detail: String,
    /// Iterations done and asked, where the log shows them.
    pub progress: Option<Progress>,
    /// What the log still proves about MPI, fabric and hosts.
    pub evidence: Box<Evidence>,
}

/// How far an iterating program came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Iterations done.
    pub done: u64,
    /// Iterations asked.
    pub asked: Option<u64>,
}

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The output of the application was not found: no header, no summary, no metric.
    NotFound,
    /// A header without a single row of data.
    NoData,
    /// The text ends inside something that cannot be read in part.
    Incomplete,
    /// A table has a column this parser does not know.
    UnknownColumn,
    /// Something is written in a way that has no single meaning.
    Malformed,
    /// The log needs more memory than a parser may use.
    TooLarge,
    /// The application waited for a licence and did not get it.
    Licence,
    /// The solution diverged.
    Diverged,
    /// Fewer iterations were done than asked.
    TooFewIterations,
    /// The application itself reported that it failed.
    Fatal,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::NotFound => "not found",
            Self::NoData => "no data",
            Self::Incomplete => "incomplete",
            Self::UnknownColumn => "unknown column",
            Self::Malformed => "malformed",
            Self::TooLarge => "too large",
            Self::Licence => "licence",
            Self::Diverged => "diverged",
            Self::TooFewIterations => "too few iterations",
            Self::Fatal => "fatal error",
        })
    }
}

impl ParseError {
    pub(crate) fn new(line: u64, reason: Reason, detail: impl Into<String>) -> Self {
        let evidence = Box::default();
        let detail = printable(detail.into());
        Self { line, reason, detail, progress: None, evidence }
    }
}
