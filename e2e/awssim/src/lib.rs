//! awssim: an independent simulator of the parts of AWS that an HPC cluster
//! operator talks to, over real HTTP. It shares no code and no assumption with
//! the operator; README.md beside the crate says what it assumes of AWS.

mod agenda;
mod bodiless;
mod bucket;
mod call;
mod calls;
mod capacity;
mod catalog;
mod clock;
mod control;
mod dice;
mod ec2;
mod effect;
mod fault;
mod fsx;
mod gate;
mod hold;
pub mod host;
mod imds;
mod incoming;
mod ledger;
pub mod machine;
mod permission;
mod quota;
mod server;
mod shared;
mod simulator;
mod ssm;
mod sts;
mod view;
mod wire;
mod world;

pub use simulator::{Config, Running, Simulator, StartError};

/// Read so that cargo, which shares its build folder, builds anew for another checkout.
const _: Option<&str> = option_env!("HPCOPS_CHECKOUT");
