//! ANSYS Fluent: the benchmark script's result file, the transcript's performance timer, the harness of 2026 R1.

mod parse;
mod residuals;
mod rules;

pub(crate) use parse::Reader;
