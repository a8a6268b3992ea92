//! The applications: the one place that knows which reader belongs to which.

use crate::evidence::Evidence;
use crate::expect::Expectation;
use crate::failure::ParseError;
use crate::fio;
use crate::line::Line;
use crate::osu;
use crate::parsed::Parsed;

/// A benchmark program, or family of programs, whose output we read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Application {
    /// OSU micro-benchmarks, and the port of them in mpi4py's `demo` folder.
    Osu,
    /// fio, with `--output-format=json` or `json+`.
    Fio,
}

impl Application {
    /// The name in the API (`application.<name>`), in file names and on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Osu => "osu",
            Self::Fio => "fio",
        }
    }

    pub(crate) fn reader(&self, expected: &Expectation) -> Reader {
        match self {
            Self::Osu => Reader::Osu(Box::new(osu::Reader::new(expected))),
            Self::Fio => Reader::Fio(Box::default()),
        }
    }
}

/// The reader of one log.
#[derive(Debug)]
pub(crate) enum Reader {
    Osu(Box<osu::Reader>),
    Fio(Box<fio::Reader>),
}

impl Reader {
    /// Takes the next line; whether it is certain to hold no evidence.
    pub(crate) fn line(&mut self, line: Line<'_>) -> bool {
        match self {
            Self::Osu(reader) => {
                reader.line(line);
                false
            }
            Self::Fio(reader) => reader.line(line),
        }
    }

    pub(crate) fn finish(self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        match self {
            Self::Osu(reader) => reader.finish(lines, evidence),
            Self::Fio(reader) => reader.finish(lines, evidence),
        }
    }
}
