//! MSC Nastran: its `.f06` (results), `.f04` (module log) and `.log` (timer), one or several of them in one stream.

mod parse;

pub(crate) use parse::Reader;
