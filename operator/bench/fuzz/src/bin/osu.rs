//! Fuzzes the reader of logs of osu.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| hpc_bench_fuzz::read(Some(&hpc_bench::Application::Osu), data));
