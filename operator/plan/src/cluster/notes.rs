//! What the head is told beyond its user data, through parameters: it may change while the head runs,
//! and there may be more of it than user data has room for.

use hpc_crds::{ConditionType, Reason};
use serde_json::json;

use crate::node::fit_parameter;

use super::part::{Part, Verdict, View};
use super::preflight::Fault;
use super::step::Step;

/// Writes what the head has not been told yet.
pub(super) fn notes(view: &View<'_>) -> Part {
    let steps = users(view).into_iter().filter_map(|text| {
        let parameter = view.desired.owner.users();
        let is_told = view.observed.notes.get(&parameter) == Some(&text);
        (!is_told).then_some(Step::Answer { parameter, text })
    });
    Part { steps: steps.collect(), ..Part::ready("") }
}

fn users(view: &View<'_>) -> Option<String> {
    fit_parameter(json!({"v": 1, "users": view.desired.cluster.users}).to_string())
}

/// What is too long to be told.
pub(super) fn fault(view: &View<'_>) -> Option<Fault> {
    let count = view.desired.cluster.users.len();
    let message = format!(
        "spec.users: the names and keys of {count} users do not fit into 4 KiB. Use ed25519 keys, \
         or give each user one key and let them add others to ~/.ssh/authorized_keys"
    );
    let verdict = Verdict::refused(Reason::UnsupportedConfiguration, message);
    users(view).is_none().then_some((ConditionType::HeadReady, verdict))
}
