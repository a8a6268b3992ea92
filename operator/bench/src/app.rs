//! The applications: the one place that knows which reader belongs to which.

use crate::command::{self, Command};
use crate::evidence::Evidence;
use crate::expect::Expectation;
use crate::failure::{ParseError, Reason};
use crate::line::Line;
use crate::parsed::Parsed;
use crate::prefix;
use crate::recognise::Seeker;
use crate::{fio, fluent, imb, ior, nastran, osu, seissol};

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
    /// fio, with `--output-format=json` or `json+`.
    Fio,
    /// IOR.
    Ior,
    /// Any other program, as declared.
    Command(Command),
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
            Self::Fio => "fio",
            Self::Ior => "ior",
            Self::Command(_) => "command",
        }
    }

    /// The application of that name; `command` has none without its declaration.
    pub fn from_name(name: &str) -> Option<Self> {
        let known = [
            Self::Osu,
            Self::Imb,
            Self::Fluent,
            Self::SeisSol,
            Self::Nastran,
            Self::Fio,
            Self::Ior,
        ];
        known.into_iter().find(|application| application.name() == name)
    }

    pub(crate) fn reader(&self, expected: &Expectation) -> Reader {
        match self {
            Self::Osu => Reader::Osu(Box::new(osu::Reader::new(expected))),
            Self::Imb => Reader::Imb(Box::new(imb::Reader::new(expected))),
            Self::Fluent => Reader::Fluent(Box::new(fluent::Reader::new(expected))),
            Self::SeisSol => Reader::SeisSol(Box::default()),
            Self::Nastran => Reader::Nastran(Box::default()),
            Self::Fio => Reader::Fio(Box::default()),
            Self::Ior => Reader::Ior(Box::default()),
            Self::Command(command) => Reader::Command(Box::new(command::Reader::new(command))),
        }
    }
}

/// The reader of one log.
#[derive(Debug, Clone)]
pub(crate) enum Reader {
    Osu(Box<osu::Reader>),
    Imb(Box<imb::Reader>),
    Fluent(Box<fluent::Reader>),
    SeisSol(Box<seissol::Reader>),
    Nastran(Box<nastran::Reader>),
    Fio(Box<fio::Reader>),
    Ior(Box<ior::Reader>),
    Command(Box<command::Reader>),
    /// The application is still to be found.
    Seeking(Box<(Seeker, Expectation)>),
}

impl Reader {
    /// Takes the next line; whether it is certain to hold no evidence.
    pub(crate) fn line(&mut self, marked: Line<'_>) -> bool {
        let line = Line { text: prefix::unmarked(marked.text), ..marked };
        match self {
            Self::Osu(reader) => reader.line(marked),
            Self::Imb(reader) => reader.line(marked),
            Self::SeisSol(reader) => reader.line(line),
            Self::Nastran(reader) => reader.line(line),
            Self::Ior(reader) => reader.line(line),
            Self::Command(reader) => reader.line(line),
            Self::Fluent(reader) => return reader.line(line),
            Self::Fio(reader) => return reader.line(line),
            Self::Seeking(seeking) => {
                if let Some(application) = seeking.0.line(marked) {
                    *self = self.found(&application);
                }
            }
        }
        false
    }

    /// The reader of the application that was found, with what was kept for it.
    fn found(&mut self, application: &Application) -> Self {
        let Self::Seeking(seeking) = self else {
            return application.reader(&Expectation::default());
        };
        let (seeker, expected) = std::mem::take(&mut **seeking);
        let mut reader = application.reader(&expected);
        seeker.replay(|line| {
            reader.line(line);
        });
        reader
    }

    /// The application's name, once it is known.
    pub(crate) fn application(&self) -> Option<&'static str> {
        match self {
            Self::Osu(_) => Some(Application::Osu.name()),
            Self::Imb(_) => Some(Application::Imb.name()),
            Self::Fluent(_) => Some(Application::Fluent.name()),
            Self::SeisSol(_) => Some(Application::SeisSol.name()),
            Self::Nastran(_) => Some(Application::Nastran.name()),
            Self::Fio(_) => Some(Application::Fio.name()),
            Self::Ior(_) => Some(Application::Ior.name()),
            Self::Command(_) => Some("command"),
            Self::Seeking(_) => None,
        }
    }

    pub(crate) fn finish(self, lines: u64, evidence: &Evidence) -> Result<Parsed, ParseError> {
        match self {
            Self::Osu(reader) => reader.finish(lines, evidence),
            Self::Imb(reader) => reader.finish(lines, evidence),
            Self::Fluent(reader) => reader.finish(lines, evidence),
            Self::SeisSol(reader) => reader.finish(lines, evidence),
            Self::Nastran(reader) => reader.finish(lines, evidence),
            Self::Fio(reader) => reader.finish(lines, evidence),
            Self::Ior(reader) => reader.finish(lines, evidence),
            Self::Command(reader) => reader.finish(lines, evidence),
            Self::Seeking(_) => {
                let detail = "no line tells which application wrote this; name it";
                Err(ParseError::new(lines, Reason::NotFound, detail))
            }
        }
    }
}
