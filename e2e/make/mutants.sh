#!/usr/bin/env bash
# Breaks the planner on purpose, one patch at a time, and sees that the test which the patch names turns red: a proof that the
# tests can fail. Prints mutant -> red test; exit 1 if a mutant survives or no longer applies.
# A mutant is a file operator/plan/mutants/NAME.patch whose first line reads `# red: CARGO_TEST_ARGUMENTS`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
shopt -s nullglob
mutants=(operator/plan/mutants/*.patch)
[ "${#mutants[@]}" -gt 0 ] || { echo "no mutants in operator/plan/mutants" >&2; exit 1; }

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -cf - | tar -xf - -C "$copy"
# The mutants share a target folder of their own, so that ordinary builds stay warm.
export CARGO_TARGET_DIR=$PWD/.lab/mutants
unset CARGO_BUILD_BUILD_DIR

survivors=0
for mutant in "${mutants[@]}"; do
  name=$(basename "$mutant" .patch)
  read -r -a test < <(sed -n '1s/^# red: //p' "$mutant")
  (cd "$copy" && git apply --unidiff-zero "$OLDPWD/$mutant")
  if ! (cd "$copy" && cargo test --quiet --no-run "${test[@]:0:2}") >"$copy.log" 2>&1; then
    echo "$name does not compile:" >&2
    tail -n 5 "$copy.log" >&2
    survivors=$((survivors + 1))
  elif (cd "$copy" && cargo test --quiet "${test[@]}") >"$copy.log" 2>&1; then
    echo "$name SURVIVED ${test[*]}"
    survivors=$((survivors + 1))
  else
    echo "$name -> ${test[*]}"
  fi
  (cd "$copy" && git apply --unidiff-zero --reverse "$OLDPWD/$mutant")
done
rm -f "$copy.log"
echo "${#mutants[@]} mutants, $survivors survived"
[ "$survivors" -eq 0 ]
