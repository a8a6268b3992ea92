//! What the product knows of benchmark programs: how one is started, what its output means, and what a set of numbers says.
//!
//! Pure: bytes in, values out. No file, clock, process, randomness or network, so every line can be tested with a table.
//! A parser accepts a complete log or says, with a line number, why not: exit code 0 is not success, a missing number is
//! absent and never 0, and nothing is guessed, averaged or dropped without a word.
//!
//! The way of an attempt through this crate: [`osu::Launch::environment`] starts it, [`parse`] reads what it printed,
//! [`judge`] says whether the numbers may enter statistics, [`stats`] and [`text`] turn repeats into what a person reads.

pub mod app;
mod attempts;
pub mod command;
pub mod evidence;
pub mod expect;
mod facts;
pub mod failure;
mod fio;
mod fluent;
mod imb;
mod ior;
mod json;
mod labels;
mod line;
mod nastran;
mod number;
pub mod osu;
pub mod parsed;
mod prefix;
mod primary;
pub mod recognise;
pub mod report;
mod rows;
mod seissol;
pub mod stats;
pub mod stream;
pub mod text;
pub mod verdict;

pub use app::Application;
pub use evidence::Evidence;
pub use expect::{Bounds, Expectation, ExpectedTable, Layout, SizeRange};
pub use failure::{ParseError, Reason};
pub use parsed::{Better, Cell, Column, Complete, Metric, Parsed, Row, Table, Validation, Warning};
pub use stream::Stream;
pub use verdict::{InvalidReason, Verdict, judge};

/// Read so that cargo, which shares its build folder, builds anew for another checkout.
const _: Option<&str> = option_env!("HPCOPS_CHECKOUT");

/// Reads one whole log. For a log that does not fit in memory, feed a [`Stream`] piece by piece.
pub fn parse(
    application: &Application,
    bytes: &[u8],
    expected: &Expectation,
) -> Result<Parsed, ParseError> {
    let mut stream = Stream::new(application, expected);
    stream.feed(bytes);
    stream.finish()
}
