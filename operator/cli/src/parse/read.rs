//! The reading itself: from a file or a pipe of any length, in pieces.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use hpc_bench::command::{Command, Declaration, DeclarationError};
use hpc_bench::{Application, Expectation, ParseError, Parsed, Stream, recognise};

use super::Arguments;

/// How much is read at once, in bytes.
const PIECE: usize = 256 * 1024;

/// A log that was read.
pub(super) struct Log {
    /// Whose it is, if that is known.
    pub application: Option<&'static str>,
    /// What it says.
    pub reading: Result<Parsed, ParseError>,
}

/// Why a log could not be read at all.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A file that cannot be opened or read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A name that is no application.
    #[error(
        "application {name:?} is not one of osu, imb, fluent, seissol, nastran, fio, ior; for any other use --declaration"
    )]
    Application {
        /// The name.
        name: String,
    },
    /// A declaration that is no JSON of the right shape.
    #[error("declaration {path} cannot be understood")]
    Shape {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A declaration that cannot be used.
    #[error("declaration {path} cannot be used")]
    Declaration {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: DeclarationError,
    },
    /// The answer could not be written.
    #[error("cannot write the answer")]
    Write {
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Reads the log that the arguments name.
pub(super) fn log(arguments: &Arguments, expected: &Expectation) -> Result<Log, Error> {
    let path = arguments.file.as_deref().filter(|path| *path != Path::new("-"));
    match application(arguments)? {
        Some(application) => {
            let log = stream(Stream::new(&application, expected), path)?;
            Ok(Log { application: Some(application.name()), ..log })
        }
        None => recognise(path, expected),
    }
}

/// Reads a log of an application nobody named; where no line tells it, the file's name may.
fn recognise(path: Option<&Path>, expected: &Expectation) -> Result<Log, Error> {
    let log = stream(Stream::recognising(expected), path)?;
    let name = path.and_then(Path::file_name).map(|name| name.to_string_lossy());
    let named =
        name.filter(|_| log.application.is_none()).and_then(|name| recognise::by_name(&name));
    match named {
        Some(application) => {
            let log = stream(Stream::new(&application, expected), path)?;
            Ok(Log { application: Some(application.name()), ..log })
        }
        None => Ok(log),
    }
}

fn application(arguments: &Arguments) -> Result<Option<Application>, Error> {
    if let Some(path) = &arguments.declaration {
        return declared(path).map(|command| Some(Application::Command(command)));
    }
    let Some(name) = &arguments.application else { return Ok(None) };
    let found = Application::from_name(name);
    found.map(Some).ok_or_else(|| Error::Application { name: name.clone() })
}

fn declared(path: &Path) -> Result<Command, Error> {
    let path = path.to_owned();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) => return Err(Error::Read { path, source }),
    };
    match serde_json::from_str::<Declaration>(&text).map(Command::new) {
        Ok(Ok(command)) => Ok(command),
        Ok(Err(source)) => Err(Error::Declaration { path, source }),
        Err(source) => Err(Error::Shape { path, source }),
    }
}

fn stream(mut stream: Stream, path: Option<&Path>) -> Result<Log, Error> {
    let done = match path {
        Some(path) => File::open(path).and_then(|mut file| pour(&mut file, &mut stream)),
        None => pour(&mut io::stdin().lock(), &mut stream),
    };
    if let Err(source) = done {
        let path = path.unwrap_or(Path::new("standard input")).to_owned();
        return Err(Error::Read { path, source });
    }
    let application = stream.application();
    Ok(Log { application, reading: stream.finish() })
}

fn pour(from: &mut impl Read, stream: &mut Stream) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => stream.feed(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
