//! The one place where AWS error codes get a meaning; the table itself is `codes.csv`.
//!
//! EC2 models no error shapes and its most important refusal, `InsufficientInstanceCapacity`, is
//! an HTTP 500, so the code decides first and the HTTP status only when the code says nothing.

use std::error::Error;
use std::sync::LazyLock;

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use hpc_plan::cloud::{Failure, Kind};

use crate::action::Action;

/// Most characters of an AWS message that are kept.
const MESSAGE_LIMIT: usize = 300;

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| rows().filter_map(Row::parse).collect());

struct Row {
    code: &'static str,
    operation: &'static str,
    words: &'static str,
    kind: Kind,
}

impl Row {
    fn parse(line: &'static str) -> Option<Self> {
        let mut cells = line.split(',');
        let (code, operation, words) = (cells.next()?, cells.next()?, cells.next()?);
        let kind = serde_json::from_value(cells.next()?.into()).ok()?;
        Some(Self { code, operation, words, kind })
    }

    fn fits(&self, code: &str, operation: &str, message: &str) -> bool {
        self.code == code
            && (self.operation.is_empty() || self.operation == operation)
            && message.contains(self.words)
    }
}

fn rows() -> impl Iterator<Item = &'static str> {
    include_str!("codes.csv").lines().filter(|line| !line.starts_with('#')).skip(1)
}

/// What a code means, looked up in the table; `status` is the HTTP status for codes not in it.
pub(crate) fn kind(action: &Action, code: &str, message: &str, status: u16) -> Kind {
    TABLE
        .iter()
        .find(|row| row.fits(code, action.name, message))
        .map_or_else(|| kind_of_status(status), |row| row.kind)
}

/// A code nobody wrote down: 4xx is a refusal, anything else leaves the outcome open.
const fn kind_of_status(status: u16) -> Kind {
    match status {
        401 | 403 => Kind::Denied,
        429 => Kind::Throttled,
        400..=499 => Kind::Invalid,
        _ => Kind::Unknown,
    }
}

/// A failure in our words.
pub(crate) fn failure(action: &Action, kind: Kind, code: &str, message: &str) -> Failure {
    Failure {
        kind,
        service: action.service.to_owned(),
        operation: action.name.to_owned(),
        code: code.to_owned(),
        message: message.chars().take(MESSAGE_LIMIT).collect(),
    }
}

/// Reads an SDK error. What never reached AWS, or came back garbled, has an unknown outcome.
pub(crate) fn from_sdk<E>(action: &Action, error: &SdkError<E, HttpResponse>) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::ServiceError(answer) => {
            let meta = answer.err();
            let (code, message) =
                (meta.code().unwrap_or_default(), meta.message().unwrap_or_default());
            let kind = kind(action, code, message, answer.raw().status().as_u16());
            failure(action, kind, code, message)
        }
        SdkError::ConstructionFailure(_) => {
            failure(action, Kind::Invalid, "ConstructionFailure", &chain(error))
        }
        SdkError::TimeoutError(_) => failure(action, Kind::Unknown, "Timeout", &chain(error)),
        SdkError::DispatchFailure(_) if lacks_credentials(error) => {
            failure(action, Kind::Credentials, "NoCredentials", &chain(error))
        }
        SdkError::DispatchFailure(_) => {
            failure(action, Kind::Unknown, "DispatchFailure", &chain(error))
        }
        SdkError::ResponseError(_) | _ => {
            failure(action, Kind::Unknown, "ResponseFailure", &chain(error))
        }
    }
}

fn lacks_credentials(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| cause.downcast_ref::<CredentialsError>().is_some())
}

/// An error and everything behind it, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{
        CREATE_NETWORK_INTERFACE, DELETE_FILE_SYSTEM, DELETE_SECURITY_GROUP, RUN_INSTANCES,
        SEND_COMMAND,
    };

    const ACTIONS: [Action; 5] = [
        CREATE_NETWORK_INTERFACE,
        DELETE_FILE_SYSTEM,
        DELETE_SECURITY_GROUP,
        RUN_INSTANCES,
        SEND_COMMAND,
    ];

    #[test]
    fn every_row_of_the_table_is_well_formed_and_reachable() {
        for line in rows() {
            let row = Row::parse(line).unwrap_or_else(|| panic!("malformed: {line}"));
            let first = TABLE
                .iter()
                .find(|other| other.fits(row.code, row.operation, row.words))
                .unwrap_or_else(|| panic!("unreachable: {line}"));
            assert_eq!(
                (first.operation, first.words),
                (row.operation, row.words),
                "hidden: {line}"
            );
        }
    }

    #[test]
    fn the_code_decides_before_the_http_status_and_the_operation_refines_it() {
        let cases = include_str!("codes_expected.csv").lines();
        for case in cases.filter(|line| !line.starts_with('#')).skip(1) {
            let cells: Vec<_> = case.split(',').collect();
            let [name, code, message, status, expected] = cells[..] else { panic!("{case}") };
            let action = ACTIONS.iter().find(|action| action.name == name).unwrap();
            let kind = kind(action, code, message, status.parse().unwrap());
            assert_eq!(kind.to_string(), expected, "{case}");
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let failure =
            failure(&RUN_INSTANCES, Kind::Denied, "UnauthorizedOperation", &"ü".repeat(900));
        assert_eq!(failure.message.chars().count(), MESSAGE_LIMIT);
    }
}
