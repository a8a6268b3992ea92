//! What can stop a pass. Failed AWS calls are not among them: they are part of the observation or
//! of the outcome, and end up in the status.

use thiserror::Error;

/// Why a pass did not come to its end.
#[derive(Debug, Error)]
pub enum Error {
    /// The object has changed since this pass read it; the next pass sees the change.
    #[error("{kind} {name} has changed meanwhile")]
    Conflict {
        /// Kind of the object.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The status could not be written.
    #[error("the status of {kind} {name} could not be written")]
    Publish {
        /// Kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// What the API server said.
        #[source]
        source: kube::Error,
    },
}

/// Whether the API server refused because the object is not the one we read.
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether the object is gone.
pub fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
