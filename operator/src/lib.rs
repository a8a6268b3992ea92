//! The imperative shell: reads Kubernetes and AWS, lets [`hpc_plan`] decide, does it, tells it.
//!
//! Both kinds go through the same five calls, `Desired::new -> observe -> plan -> act -> publish`,
//! in files of the same names. Nothing here decides: a question that needs an answer belongs into
//! the planner, where it is proven.

pub mod clock;
pub mod cluster;
pub mod context;
pub mod controller;
pub mod finalizer;
pub mod flags;
pub mod heads;
pub mod lease;
pub mod memory;
pub mod publish;
pub mod run;
pub mod telemetry;
