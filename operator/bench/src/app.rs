//! The applications: the one place that knows which reader belongs to which.

use crate::evidence::Evidence;
use crate::expect::Expectation;
use crate::failure::ParseError;
use crate::fio;
use crate::fluent;
use crate::imb;
use crate::ior;
use crate::line::Line;
use crate::nastran;
use crate::osu;
use crate::parsed::Parsed;
use crate::seissol;

/// A benchmark program, or family of programs, whose output we read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Application {
    /// OSU micro-benchmarks, and the port of them in mpi4py's `demo` folder.
    Osu,
    /// Intel MPI Benchmarks: IMB-MPI1, and IMB-NBC, IMB-RMA and IMB-P2P, which print the same tables.
    Imb,
    /// ANSYS Fluent.
    Fluent,
    /// SeisSol.
    SeisSol,
    /// MSC Nastran.
    Nastran,
    /// IOR.
    Ior,
    /// fio, with `--output-format=json` or `json+`.
    Fio,
}

impl Application {
    /// The name in the API (`application.<name>`), in file names and on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Osu => "osu",
            Self::Imb => "imb",
            Self::Fluent => "fluent",
            Self::SeisSol => "seissol",
            Self::Nastran => "nastran",
            Self::Ior => "ior",
            Self::Fio => "fio",
        }
    }

    pub(crate) fn reader(&self, expected: &Expectation) -> Reader {
        match self {
            Self::Osu => Reader::Osu(Box::new(osu::Reader::new(expected))),
            Self::Imb => Reader::Imb(Box::new(imb::Reader::new(expected))),
            Self::Fluent => Reader::Fluent(Box::new(fluent::Reader::new(expected))),
            Self::SeisSol => Reader::SeisSol(Box::default()),
            Self::Nastran => Reader::Nastran(Box::default()),
            Self::Ior => Reader::Ior(Box::default()),
            Self::Fio => Reader::Fio(Box::default()),
        }
    }
}

/// The reader of one log.
#[derive(Debug)]
pub(crate) enum Reader {
    Osu(Box<osu::Reader>),
    Imb(Box<imb::Reader>),
    Fluent(Box<fluent::Reader>),
    SeisSol(Box<seissol::Reader>),
    Nastran(Box<nastran::Reader>),
    Ior(Box<ior::Reader>),
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
            Self::Imb(reader) => {
                reader.line(line);
                false
            }
            Self::Fluent(reader) => reader.line(line),
            Self::SeisSol(reader) => {
                reader.line(line);
                false
            }
            Self::Nastran(reader) => {
                reader.line(line);
                false
            }
            Self::Ior(reader) => {
                reader.line(line);
                false
            }
            Self::Fio(reader) => reader.line(line),
        }
    }

    pub(crate) fn finish(self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        match self {
            Self::Osu(reader) => reader.finish(lines, evidence),
            Self::Imb(reader) => reader.finish(lines, evidence),
            Self::Fluent(reader) => reader.finish(lines, evidence),
            Self::SeisSol(reader) => reader.finish(lines, evidence),
            Self::Nastran(reader) => reader.finish(lines, evidence),
            Self::Ior(reader) => reader.finish(lines, evidence),
            Self::Fio(reader) => reader.finish(lines, evidence),
        }
    }
}
