//! Bodies as a simulator uses them. All need root; without it they say so and pass.

mod body;
mod ending;
mod job;
mod lab;
