#!/usr/bin/env bash
# Installs the Debian packages that the build, the lab and the tests need and this machine lacks. Says which toolchains are
# missing, because those are the user's to choose. Prints nothing when all is there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

for tool in cargo go python3; do
  command -v "$tool" >/dev/null || { echo "$tool is missing: install Rust (rustup), Go 1.26 or newer, and Python 3" >&2; exit 1; }
done

mapfile -t wanted < <(grep -v '^#' "$here/packages.txt")
if ! command -v dpkg-query >/dev/null; then
  echo "this is no Debian machine; install what these packages hold: ${wanted[*]}" >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  state=$(dpkg-query --show --showformat '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $state == ii* ]] || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
  echo "missing packages; run as root: apt-get update && apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# No daemon of these packages may start on the machine itself: they run inside bodies only.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod +x "$policy"
  trap 'rm -f "$log" "$policy"' EXIT
fi
if ! { apt-get update && apt-get install -y --no-install-recommends "${missing[@]}"; } > "$log" 2>&1; then
  tail -n 20 "$log" >&2
  exit 1
fi
