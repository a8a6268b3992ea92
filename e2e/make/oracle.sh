#!/usr/bin/env bash
# The independent oracle: boto3 drives every action of the simulator and parses every answer, and every request that the
# operator made in the stories is checked against botocore's models.
# usage: oracle.sh drive | oracle.sh requests FILE
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
verb=${1:?usage: oracle.sh drive | oracle.sh requests FILE}

wanted=e2e/oracle/requirements.txt
venv=${XDG_CACHE_HOME:-$HOME/.cache}/hpcops/pypi/oracle-$(sha256sum "$wanted" | cut -c1-12)
mkdir -p "$(dirname "$venv")"
exec 9>"$venv.lock"
flock 9
if [ ! -e "$venv/complete" ]; then
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
  touch "$venv/complete"
fi
flock -u 9

state=$(mktemp -d)
if [ "$verb" = requests ]; then
  # The validator asks a simulator; those of the stories are gone, so their answer is served again.
  mkdir "$state/_sim"
  cp "${2:?usage: oracle.sh requests FILE}" "$state/_sim/requests"
  "$venv/bin/python" -u -m http.server --bind 127.0.0.1 --directory "$state" 0 >"$state/line" 2>"$state/log" &
else
  target/debug/awssim --listen 127.0.0.1:0 --seed 1 --time-scale 0.01 --state-dir "$state/state" --bodies none \
    >"$state/line" 2>"$state/log" &
fi
sim=$!
trap 'kill "$sim" 2>/dev/null || true; wait "$sim" 2>/dev/null || true; rm -rf "$state"' EXIT
for _ in $(seq 100); do
  [ ! -s "$state/line" ] || break
  kill -0 "$sim" 2>/dev/null || { cat "$state/log" >&2; exit 1; }
  sleep 0.1
done
url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$state/line" | head -n 1)
if [ "$verb" = requests ]; then
  "$venv/bin/python" e2e/oracle/validate_requests.py "$url"
else
  "$venv/bin/python" e2e/oracle/drive.py "$url"
fi
