//! IOR: its text of every version since 3.0, its JSON (valid or not) and its CSV.

mod json;
mod parse;
mod report;
mod run;
mod text;

pub(crate) use parse::Reader;
