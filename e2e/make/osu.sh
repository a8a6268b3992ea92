#!/usr/bin/env bash
# Prints a folder with the OSU-format latency and bandwidth programs of mpi4py, taken from its source distribution on PyPI.
set -euo pipefail
version=4.1.2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hpcops/osu
mkdir -p "$cache"
if [ ! -d "$cache/$version" ]; then
  exec 9>"$cache/$version.lock"
  flock 9
  if [ ! -d "$cache/$version" ]; then
    work=$(mktemp -d "$cache/XXXXXX")
    trap 'rm -rf "$work"' EXIT
    python3 -m venv "$work/venv" >&2
    # pip prepares its metadata in a build environment of its own; nothing is compiled.
    "$work/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary mpi4py \
      --dest "$work" "mpi4py==$version" >&2
    mkdir "$work/programs"
    tar -xzf "$work/mpi4py-$version.tar.gz" -C "$work/programs" --strip-components 2 \
      "mpi4py-$version/demo/osu_latency.py" "mpi4py-$version/demo/osu_bw.py"
    chmod 755 "$work/programs"
    mv "$work/programs" "$cache/$version"
  fi
fi
echo "$cache/$version"
