//! Fuzzes the reader of the output of a declared program.
#![no_main]
use std::sync::LazyLock;

static COMMAND: LazyLock<hpc_bench::Application> = LazyLock::new(hpc_bench_fuzz::command);

libfuzzer_sys::fuzz_target!(|data: &[u8]| hpc_bench_fuzz::read(Some(&COMMAND), data));
