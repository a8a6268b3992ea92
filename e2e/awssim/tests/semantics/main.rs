//! What simulated AWS does, as sentences and tables over its real HTTP.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what is missing here fails the test that looked for it"
)]

mod bodies;
mod control;
mod faults;
mod file_systems;
mod groups;
mod host_view;
mod lab;
mod launches;
mod life;
mod parameters;
mod refusals;
mod throttling;
mod tokens;
mod volumes;
mod wire;
