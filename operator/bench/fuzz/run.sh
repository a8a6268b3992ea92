#!/usr/bin/env bash
# Fuzzes the parsers: run.sh SECONDS [TARGET...]   (targets: the names in src/bin; default: all of them)
# Needs a C++ compiler for libFuzzer; runs on the pinned stable toolchain, because coverage is an LLVM pass of its own.
# What is found is left in target/fuzz/TARGET/ with a line that says how to run it again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

seconds=${1:?seconds for each target}
shift
targets=("$@")
if ((${#targets[@]} == 0)); then
  for source in src/bin/*.rs; do
    targets+=("$(basename "$source" .rs)")
  done
fi

triple=$(rustc -vV | sed -n 's/^host: //p')
out=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$out RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing"
# A target of its own keeps the pass away from build scripts, which libFuzzer is not linked to.
cargo build --release --locked --target "$triple" --bins

for target in "${targets[@]}"; do
  found=$out/fuzz/$target
  mkdir -p "$found/corpus"
  seeds=(../tests/logs/"$target")
  [[ $target == any ]] && seeds=(../tests/logs/*/ ../tests/samples)
  log=$found/log
  if ! "$out/$triple/release/$target" -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=1024 \
    -print_final_stats=1 -artifact_prefix="$found/" "$found/corpus" "${seeds[@]}" >"$log" 2>&1; then
    tail -n 40 "$log"
    printf '%s: found something; run it again with: %s %s/crash-*\n' "$target" "$out/$triple/release/$target" "$found"
    exit 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$log")
  memory=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
  printf '%s: %s s, %s inputs, %s MB, nothing found\n' "$target" "$seconds" "$runs" "$memory"
done
