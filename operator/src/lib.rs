//! The imperative shell: it reads, carries out and publishes; what to do is decided in `hpc-plan`.

pub mod cluster;
pub mod config;
pub mod context;
pub mod controllers;
pub mod error;
pub mod finalizer;
pub mod heads;
pub mod http;
pub mod lease;
pub mod publish;
pub mod run;
pub mod telemetry;
