#!/bin/sh
# The one Run Command document: every question to a head is a payload for job.py.
# The agent puts the payload in as text; its pattern lets base64 through and nothing else.
set -eu
HPCOPS_PAYLOAD='{{ payload }}'
HPCOPS_BATCH=$(cat <<'HPCOPS_BATCH_END'
#include job.sh
HPCOPS_BATCH_END
)
export HPCOPS_PAYLOAD HPCOPS_BATCH
exec python3 - <<'HPCOPS_JOB_END'
#include job.py
HPCOPS_JOB_END
