//! Fuzzes the reader of logs of fluent.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| hpc_bench_fuzz::read(Some(&hpc_bench::Application::Fluent), data));
