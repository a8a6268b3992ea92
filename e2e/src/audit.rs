//! The apiserver's audit log, read as the neutral witness of who wrote what.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{LabError, Result};

/// One write that the apiserver answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// Path and query as requested.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// Who asked.
    pub user: User,
    /// What it was about.
    #[serde(default)]
    pub object_ref: ObjectRef,
    /// How it was answered.
    #[serde(default)]
    pub response_status: ResponseStatus,
    /// When the apiserver got it, RFC 3339.
    pub request_received_timestamp: String,
}

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    /// For a pod `system:serviceaccount:<namespace>:<name>`.
    pub username: String,
}

/// What a request was about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Plural, lower case.
    pub resource: String,
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    /// Empty for a create with a generated name.
    pub name: String,
    /// Such as `status`.
    pub subresource: String,
}

/// How a request was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResponseStatus {
    /// HTTP status.
    pub code: u16,
}

impl Write {
    /// Whether it only renewed a lease, which a steady operator does all the time.
    pub fn is_lease(&self) -> bool {
        self.object_ref.resource == "leases"
    }
}

/// The log file of one control plane.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

impl AuditLog {
    /// The log at `path`; it appears with the first request.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All writes by a user, leases excepted, oldest first.
    pub fn writes_by(&self, username: &str) -> Result<Vec<Write>> {
        let text = std::fs::read_to_string(&self.path).map_err(LabError::io("read", &self.path))?;
        let theirs = |write: &Write| write.user.username == username && !write.is_lease();
        Ok(parse(&text, username)?.into_iter().filter(theirs).collect())
    }

    /// Every recorded line about a namespace, for the evidence of a failed story.
    pub fn lines_about(&self, namespace: &str) -> Result<String> {
        let text = std::fs::read_to_string(&self.path).map_err(LabError::io("read", &self.path))?;
        let about = |line: &&str| line.contains(namespace);
        Ok(text.lines().filter(about).flat_map(|line| [line, "\n"]).collect())
    }
}

/// Lines that cannot be about `username` are skipped unparsed: the log of a test run is long.
fn parse(text: &str, username: &str) -> Result<Vec<Write>> {
    let complete = text.rsplit_once('\n').map_or("", |(complete, _partial)| complete);
    let lines = complete.lines().enumerate().filter(|(_, line)| line.contains(username));
    lines
        .map(|(at, line)| {
            let what = format!("line {} of the audit log", at + 1);
            serde_json::from_str(line).map_err(LabError::malformed(what))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = include_str!("audit_sample.jsonl");

    #[test]
    fn a_write_says_who_did_what_to_which_object() {
        let writes = parse(LOG, "system:serviceaccount:team:operator").unwrap();
        let told: Vec<_> = writes
            .iter()
            .map(|w| format!("{} {}/{}", w.verb, w.object_ref.resource, w.object_ref.subresource))
            .collect();
        assert_eq!(told, ["update leases/", "patch hpcclusters/status"]);
        assert_eq!(writes.iter().filter(|w| w.is_lease()).count(), 1);
    }

    #[test]
    fn a_line_still_being_written_is_not_read() {
        let cut = &LOG[..LOG.len() - 40];
        assert_eq!(parse(cut, "system:serviceaccount:team:operator").unwrap().len(), 1);
    }
}
