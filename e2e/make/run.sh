#!/usr/bin/env bash
# Runs the stages of `make check`, `make test` or `make test-full`: each stage's seconds, the ten slowest stories, and at the
# end one line `N passed, N failed`. A failed stage does not hide the next ones, except where they cannot run without it.
# usage: run.sh check|test|full
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
mode=${1:?usage: run.sh check|test|full}
logs=$PWD/.lab/logs
rm -rf "$logs"
mkdir -p "$logs"
export HPCOPS_RESULTS=$logs/stories.tsv HPCOPS_REQUESTS=$logs/requests.json
table=() passed=0 failed=0

# stage NAME COMMAND...: runs it, shows its output, keeps it, counts it.
stage() {
  local name=$1 start=$SECONDS log code=0 ok bad
  shift
  log=$logs/${name// /-}.log
  printf '\n=== %s\n' "$name"
  "$@" 2>&1 | tee "$log"
  code=${PIPESTATUS[0]}
  read -r ok bad < <(python3 e2e/make/count.py "$log" "$code")
  passed=$((passed + ok)) failed=$((failed + bad))
  table+=("$(printf '%6d s  %-6s %s' $((SECONDS - start)) "$([ "$code" -eq 0 ] && echo ok || echo FAILED)" "$name")")
  return "$code"
}

finish() {
  printf '\n=== seconds per stage\n'
  printf '%s\n' "${table[@]}"
  if [ -s "$HPCOPS_RESULTS" ]; then
    printf '\n=== slowest stories\n'
    sort -rn "$HPCOPS_RESULTS" | head -n 10
  fi
  printf '\n%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" -eq 0 ]
  exit
}

checks() {
  stage "format" cargo fmt --all --check
  stage "scripts" e2e/make/scripts.sh
  stage "sizes" python3 e2e/make/fnlen.py --check crds operator e2e/src e2e/awssim
  stage "dependencies" e2e/make/deny.sh
  stage "each crate alone" e2e/make/alone.sh
  stage "lints" cargo clippy --workspace --all-targets --quiet -- -D warnings
  stage "unit tests" cargo test --workspace --all-targets --quiet -- "${left_out[@]}"
}

stage "packages" e2e/make/install.sh || finish
left_out=()
if [ "$mode" = check ]; then
  # Minutes of proof: `make test` has them.
  left_out=(--skip any_two_faults)
  checks
  finish
fi

stage "control plane" e2e/make/tools.sh || finish
stage "build" cargo build --workspace --all-targets --quiet || finish
checks
stage "oracle answers" e2e/make/oracle.sh drive
[ "$mode" != full ] || export HPCOPS_FULL=1
stage "stories" e2e/make/stories.sh
stage "bug classes" python3 e2e/make/classes.py docs/bug-classes.md "$HPCOPS_RESULTS"
stage "oracle requests" e2e/make/oracle.sh requests "$HPCOPS_REQUESTS"
if [ "$mode" = full ]; then
  stage "parsers in full" env HPCOPS_TEST_FULL=1 cargo test --workspace --test properties --quiet
  stage "fuzz" operator/bench/fuzz/run.sh 60
  stage "mutants" operator/plan/tests/mutants/run.sh
  stage "operator without intents" e2e/make/without_intents.sh
fi
finish
