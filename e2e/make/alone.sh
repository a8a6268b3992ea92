#!/usr/bin/env bash
# The pure crates build by themselves, and nothing they depend on can do IO: what a whole-workspace build would hide.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

pure=(hpc-crds hpc-bench hpc-plan)
impure='^(tokio|async-std|smol|hyper|reqwest|ureq|kube-client|kube-runtime|aws-[a-z0-9-]+|rand|fastrand|chrono|uuid) '
for crate in "${pure[@]}"; do
  cargo check --quiet --package "$crate"
  if found=$(cargo tree --package "$crate" --edges normal --prefix none | sort -u | grep -E "$impure"); then
    echo "$crate must stay pure but depends on:" >&2
    echo "$found" >&2
    exit 1
  fi
  echo "$crate builds alone and is pure"
done

if cargo tree --package hpc-e2e --edges normal,build,dev --prefix none | grep -qE '^aws-(sdk|config|smithy|sigv4|types|runtime)'; then
  echo "hpc-e2e must not link an AWS SDK: it would test the operator with its own means" >&2
  exit 1
fi
if cargo tree --package awssim --edges normal --prefix none | grep -qE '^(aws-(sdk|config|smithy|sigv4|types|runtime)|hpc-)'; then
  echo "awssim must share no code with the operator and no AWS SDK" >&2
  exit 1
fi
echo "hpc-e2e and awssim link no AWS SDK"
