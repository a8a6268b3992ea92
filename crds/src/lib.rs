//! The public API `hpcops.dev/v1alpha1` and nothing else: what a user may write, what the
//! operator may answer. No client, no clock, no IO, so that every other crate can depend on it.

pub mod cluster;
pub mod condition;
pub mod intent;
pub mod rules;
pub mod run;
mod schema;
pub mod types;

pub use cluster::*;
pub use condition::{Condition, ConditionSet, ConditionStatus, ConditionType, Reason};
pub use intent::{Intent, IntentState};
pub use run::*;
pub use schema::{all, manifest};
pub use types::Time;

/// Read so that cargo, which shares its build folder, builds anew for another checkout.
const _: Option<&str> = option_env!("HPCOPS_CHECKOUT");

/// The API group of both kinds.
pub const GROUP: &str = "hpcops.dev";

/// The version served and stored.
pub const VERSION: &str = "v1alpha1";
