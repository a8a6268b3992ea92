#!/usr/bin/env bash
# Writes everything that is generated: the CRDs from their types, the chart's copies of them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
UPDATE=1 cargo test --quiet --workspace --test yaml
rm -f charts/hpc-operator/files/crds/*.yaml
cp crds/yaml/*.yaml charts/hpc-operator/files/crds/
git status --short crds charts docs
