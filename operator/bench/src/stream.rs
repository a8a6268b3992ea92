//! A log read piece by piece, in memory that does not grow with it.

use crate::app::{Application, Reader};
use crate::evidence::Scanner;
use crate::expect::Expectation;
use crate::failure::ParseError;
use crate::line::{Line, Sink, Splitter};
use crate::parsed::Parsed;
use crate::recognise::Seeker;

/// One log on its way in.
#[derive(Debug, Clone)]
pub struct Stream {
    splitter: Splitter,
    inner: Inner,
}

#[derive(Debug, Clone)]
struct Inner {
    scanner: Scanner,
    reader: Reader,
}

impl Stream {
    /// Begins a log of an application.
    pub fn new(application: &Application, expected: &Expectation) -> Self {
        let inner = Inner { scanner: Scanner::default(), reader: application.reader(expected) };
        Self { splitter: Splitter::default(), inner }
    }

    /// Begins a log of whichever application it turns out to be.
    pub fn recognising(expected: &Expectation) -> Self {
        let reader = Reader::Seeking(Box::new((Seeker::default(), expected.clone())));
        let inner = Inner { scanner: Scanner::default(), reader };
        Self { splitter: Splitter::default(), inner }
    }

    /// The name of the application, once a line has told it.
    pub fn application(&self) -> Option<&'static str> {
        self.inner.reader.application()
    }

    /// Takes the next bytes, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.splitter.feed(bytes, &mut self.inner);
    }

    /// Ends the log.
    pub fn finish(mut self) -> Result<Parsed, ParseError> {
        let lines = self.splitter.finish(&mut self.inner);
        let Inner { scanner, reader } = self.inner;
        let evidence = scanner.evidence;
        match reader.finish(lines, &evidence) {
            Ok(parsed) => Ok(Parsed { evidence, ..parsed }),
            Err(error) => Err(ParseError { evidence: Box::new(evidence), ..error }),
        }
    }
}

impl Sink for Inner {
    fn line(&mut self, line: Line<'_>) {
        if !self.reader.line(line) {
            self.scanner.line(line.number, line.text);
        }
    }
}
