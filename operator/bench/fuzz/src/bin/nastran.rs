//! Fuzzes the reader of logs of nastran.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| hpc_bench_fuzz::read(Some(&hpc_bench::Application::Nastran), data));
