//! The user stories: each watches the operator, or the API it relies on, in a lab where everything
//! but AWS and the hardware is real. One binary, so that the lab is started once.
//!
//! `make repeat STORY=name N=20` runs one story many times.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::cognitive_complexity,
    reason = "stories are tests: a panic is a failure with its place and words"
)]

mod admission;
mod chart;
mod columns;
mod control_plane;
mod elastic;
mod first_light;
mod health;
mod kill;
mod life;
mod operator_pod;
mod refusals;
mod resource_version;
mod runner;
mod site;
mod users;

use std::process::ExitCode;

fn main() -> ExitCode {
    let stories = [
        admission::stories(),
        chart::stories(),
        columns::stories(),
        control_plane::stories(),
        elastic::stories(),
        first_light::stories(),
        health::stories(),
        kill::stories(),
        life::stories(),
        operator_pod::stories(),
        refusals::stories(),
        resource_version::stories(),
        users::stories(),
    ]
    .concat();
    let code = runner::main(&stories);
    runner::say(&kill::coverage());
    code
}
