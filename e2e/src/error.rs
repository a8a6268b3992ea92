//! What can go wrong in the lab itself. A story that fails on one of these has met a broken lab or
//! an expectation that did not come true in time; both say what was tried.

use std::path::PathBuf;
use std::time::Duration;

/// The cause kept behind a [`LabError`].
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A failure of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file, folder or process could not be used.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// Verb, such as `read`.
        what: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A program ended with an error.
    #[error("{program} failed ({status}): {message}")]
    Command {
        /// Name of the program with its first arguments.
        program: String,
        /// Its exit status in words.
        status: String,
        /// The last lines it wrote.
        message: String,
    },
    /// The Kubernetes API refused or could not be reached.
    #[error("Kubernetes: cannot {what}")]
    Kube {
        /// What was asked of it.
        what: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The simulator's control API refused or could not be reached.
    #[error("awssim: {what} failed")]
    Sim {
        /// Method and path.
        what: String,
        /// The cause.
        #[source]
        source: Cause,
    },
    /// Something did not come true in time.
    #[error("{what}: not within {within:?}; last seen: {last}")]
    Deadline {
        /// The behaviour waited for, as a sentence.
        what: String,
        /// How long it was waited for.
        within: Duration,
        /// What was seen at the end.
        last: String,
    },
    /// A document does not say what the lab needs.
    #[error("{what} is not what the lab expects")]
    Malformed {
        /// Which document, and where in it.
        what: String,
        /// The cause.
        #[source]
        source: Cause,
    },
    /// Something the lab needs is not there.
    #[error("{what} is missing: {hint}")]
    Missing {
        /// What.
        what: String,
        /// How to get it.
        hint: String,
    },
}

impl LabError {
    /// An [`LabError::Io`], for `map_err`.
    pub fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }

    /// An [`LabError::Kube`], for `map_err`.
    pub fn kube(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Kube { what, source: Box::new(source) }
    }

    /// An [`LabError::Malformed`], for `map_err`.
    pub fn malformed<E: Into<Cause>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Malformed { what, source: source.into() }
    }

    /// An [`LabError::Missing`].
    pub fn missing(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Missing { what: what.into(), hint: hint.into() }
    }

    /// The whole chain on one line, the outermost first.
    pub fn chain(&self) -> String {
        let mut line = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            line = format!("{line}: {error}");
            cause = error.source();
        }
        line
    }
}

/// Result of a lab operation.
pub type Result<T> = std::result::Result<T, LabError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_names_every_cause_once() {
        let error = LabError::io("read", "/no/such/file")(std::io::Error::other("gone"));
        assert_eq!(error.to_string(), "cannot read /no/such/file");
        assert_eq!(error.chain(), "cannot read /no/such/file: gone");
    }
}
