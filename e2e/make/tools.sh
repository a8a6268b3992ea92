#!/usr/bin/env bash
# Builds or finds the programs of the control plane.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/../controlplane/build.sh"
"$here/../controlplane/kubectl.sh"
