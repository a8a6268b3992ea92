//! fio, the flexible I/O tester: its JSON output, of versions 2 and 3.

mod document;
mod parse;

pub(crate) use parse::Reader;
