//! SeisSol: the summary at the end of its log, of every generation of the logger.

mod parse;
mod quantity;

pub(crate) use parse::Reader;
