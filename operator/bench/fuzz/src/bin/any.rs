//! Fuzzes the reader of any log, whose application it has to recognise.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| hpc_bench_fuzz::read(None, data));
