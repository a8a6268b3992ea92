//! The tests of the public API: what is generated, what is refused, what a condition does.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what is missing here fails the test that looked for it"
)]

mod cel;
mod condition;
mod examples;
mod lint;
mod reasons;
mod types;
mod yaml;

use serde_json::Value;

/// The manifest of a kind.
fn manifest(kind: &str) -> Value {
    let all = hpc_crds::all();
    let definition = all.iter().find(|definition| definition.spec.names.kind == kind).unwrap();
    hpc_crds::manifest(definition)
}

/// The schema of a kind.
fn schema(kind: &str) -> Value {
    manifest(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}
