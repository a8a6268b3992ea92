#!/usr/bin/env bash
# Shows that the kill stories bite: an operator built without intents must fail one of them, and for that reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
tree=$root/target/mutants/operator
story=killed_After_RunInstances_queue-compute_1

mkdir -p "$tree/bin"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --preserve=timestamps --target-directory="$tree"
(
  cd "$tree"
  patch --quiet --fuzz=0 -p1 < "$root/operator/plan/tests/mutants/no-intent.patch"
  CARGO_TARGET_DIR=$tree/target CARGO_BUILD_BUILD_DIR=$tree/target cargo build --quiet --package hpc-operator
)
ln -sf "$tree/target/debug/hpc-operator" "$root/target/debug/awssim" "$tree/bin"

log=$tree/log
if env -u HPCOPS_RESULTS -u HPCOPS_REQUESTS HPCOPS_FULL=1 HPCOPS_BIN_DIR="$tree/bin" e2e/make/stories.sh "$story" > "$log" 2>&1; then
  echo "an operator without intents survives $story"
  exit 1
fi
if ! grep 'its token is not in status' "$log"; then
  cat "$log"
  echo "an operator without intents fails $story, but for another reason"
  exit 1
fi
echo "an operator without intents fails $story"
