#!/bin/bash
# Prints how long each step of each boot took.
set -euo pipefail
for node in /hpcops/state/boot/*; do
  grep -ho '"step": "[^"]*", "start": [0-9.]*, "seconds": [0-9.]*, "exit": [0-9]*' "$node"/*.json |
    sort -t: -k3 | sed "s|^|${node##*/} |"
done
