//! `kubectl hpc parse`: one log in, its numbers and their lines out.
//!
//! Exit code 0: read; 2: partial; 3: failed, or the numbers do not count; 1: the log could not be read at all.

mod arguments;
mod read;
mod show;

use std::io::{self, Write};
use std::process::ExitCode;

use hpc_bench::report::{self, Status};
use hpc_bench::{Verdict, judge};

pub(crate) use arguments::Arguments;
use arguments::Output;

/// Reads the log and shows what is in it.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match answer(arguments) {
        Ok(status) => code(status),
        Err(error) => {
            let mut text = format!("kubectl hpc parse: {error}");
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text.push_str(": ");
                text.push_str(&cause.to_string());
                source = cause.source();
            }
            // Nothing can be said where the terminal is gone.
            let _ = writeln!(io::stderr(), "{text}");
            ExitCode::FAILURE
        }
    }
}

fn answer(arguments: &Arguments) -> Result<Status, read::Error> {
    let expected = arguments.expectation();
    let log = read::log(arguments, &expected)?;
    let is_judged = arguments.is_judged();
    let verdict =
        log.reading.as_ref().ok().filter(|_| is_judged).map(|parsed| judge(parsed, &expected));
    let status = report::status(&log.reading, verdict.as_ref());
    let text = match arguments.output {
        Output::Json => json(&log, verdict.as_ref()),
        Output::Text => show::text(&log, status, verdict.as_ref()),
    };
    write(&text)?;
    Ok(status)
}

fn json(log: &read::Log, verdict: Option<&Verdict>) -> String {
    format!("{:#}\n", report::document(log.application, &log.reading, verdict))
}

/// A reader that has seen enough closes the pipe; that is no error.
fn write(text: &str) -> Result<(), read::Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            Err(read::Error::Write { source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn code(status: Status) -> ExitCode {
    ExitCode::from(match status {
        Status::Ok => 0,
        Status::Partial => 2,
        Status::Failed | Status::Invalid => 3,
    })
}
