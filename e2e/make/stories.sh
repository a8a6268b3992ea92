#!/usr/bin/env bash
# Tells the user stories in the lab; arguments go to their runner (a filter, --times, --jobs, --list).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# One feature set for all builds, hence --workspace. The seed follows the commit, so that every commit tries another one.
seed=${HPCOPS_SEED:-$((16#$(git rev-parse HEAD 2>/dev/null | cut -c1-8 || echo 1)))}
HPCOPS_STORIES=1 HPCOPS_SEED=$seed exec cargo test --quiet --workspace --test stories -- "$@"
