//! Any other program: a user declares which numbers its output holds.
//!
//! A metric is found by a regular expression, which takes time in proportion to the output whatever it is, or by a JSON
//! pointer. Patterns also say what must be there, and what must not.

mod declare;
mod parse;
mod pointer;

pub use declare::{Command, Declaration, DeclarationError, Declared, Pick, Source};
pub(crate) use parse::Reader;
