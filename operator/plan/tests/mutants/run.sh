#!/usr/bin/env bash
# Shows that the proof bites: each patch breaks the planner in one way, and a named test must see it.
#
# usage: run.sh [NAME...]   all patches, or the named ones; prints `mutant -> red test`,
#                           exits 1 when one survives or no longer applies
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}/mutants"
# Not the build folder of another checkout: what cargo keeps there is told apart by path.
export CARGO_BUILD_BUILD_DIR="$CARGO_TARGET_DIR/build"
export INSTA_UPDATE=no RUST_BACKTRACE=0

# The workspace cut down to what the planner is built of.
mkdir -p "$copy/operator"
cp -R "$root/crds" "$copy/crds"
cp -R "$root/operator/plan" "$root/operator/bench" "$copy/operator"
cp "$root/Cargo.lock" "$root/rust-toolchain.toml" "$copy"
sed -e 's|^members = .*|members = ["crds", "operator/plan", "operator/bench"]|' \
    -e '/^\[profile.dev.package.awssim\]/,/^$/d' "$root/Cargo.toml" > "$copy/Cargo.toml"
cd "$copy"

test_of() {
    sed -n 's/^Test: //p' "$1"
}

# Runs one test by name: 0 when it is green, 1 when it is red, 2 when it could not run.
run() {
    local binary=$1 name=$2
    cargo test --quiet -p hpc-plan --test "$binary" --no-run > log 2>&1 || return 2
    if cargo test --quiet -p hpc-plan --test "$binary" -- --exact "$name" > log 2>&1; then
        grep -q '1 passed' log || return 2
    else
        grep -q "^    $name\$" log && grep -q '1 failed' log && return 1
        return 2
    fi
}

fail() {
    echo "$1" >&2
    tail -n 40 log >&2 || true
    exit 1
}

if [ $# -gt 0 ]; then
    patches=("${@/#/$here/}")
    patches=("${patches[@]/%/.patch}")
else
    patches=("$here"/*.patch)
fi

for patch in "${patches[@]}"; do test_of "$patch"; done | sort -u > tests
while read -r binary name; do
    run "$binary" "$name" < /dev/null || fail "$binary $name is not green without a mutant"
done < tests

survivors=0
for patch in "${patches[@]}"; do
    mutant=$(basename "$patch" .patch)
    read -r binary name <<< "$(test_of "$patch")"
    patch --quiet --fuzz=0 -p1 < "$patch" > log 2>&1 || fail "$mutant no longer applies"
    status=0
    run "$binary" "$name" || status=$?
    case $status in
        0)
            echo "$mutant SURVIVES $binary::$name"
            survivors=$((survivors + 1))
            ;;
        1) echo "$mutant -> $binary::$name" ;;
        *) fail "$mutant does not run" ;;
    esac
    patch --quiet --fuzz=0 -R -p1 < "$patch" > log 2>&1 || fail "$mutant cannot be taken back"
done

echo "${#patches[@]} mutants, $survivors survived"
[ "$survivors" -eq 0 ]
