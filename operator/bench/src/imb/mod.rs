//! Intel MPI Benchmarks: the tables of IMB-MPI1 and of its siblings that print the same columns (NBC, RMA, P2P).

mod columns;
mod parse;

pub(crate) use parse::Reader;
