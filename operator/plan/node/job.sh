#!/bin/bash
# The batch script of every attempt, run in the attempt's folder as the run's user.
# Its first act is the mark that it started, its last the exit file: together they make an attempt run at most once.
set -uo pipefail
started=$(date +%s.%3N)
if ! mkdir started; then
  echo "hpcops: this attempt has started before; this copy leaves" >&2
  exit 75
fi
mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")

# Names reach the nodes within seconds of their boot; a job may be faster.
for host in "${hosts[@]}"; do
  until getent hosts "$host" >/dev/null || [ $SECONDS -ge 60 ]; do sleep 0.5; done
done

finish() {
  local mpirun names
  # run.sh says in the log when it calls mpirun.
  mpirun=$(sed -n '/^hpcops: mpirun-start epoch-ms=[0-9]\{13\}$/{s/.*=\(.*\)\(...\)$/\1.\2/p;q}' output.log)
  printf -v names ',"%s"' "${hosts[@]}"
  printf '{"code":%d,"startedAt":%s,"mpirunStartedAt":%s,"finishedAt":%s,"jobId":"%s","hosts":[%s]}\n' \
    "$1" "$started" "${mpirun:-null}" "$(date +%s.%3N)" "$SLURM_JOB_ID" "${names:1}" >exit.new
  mv exit.new exit
}

# The environment is data until it is set: nothing evaluates it.
python3 -c 'import json, os
with open("environment.json") as file:
    os.environ.update(json.load(file))
os.execvp("bash", ["bash", "run.sh"])' &
child=$!
trap 'kill -TERM $child 2>/dev/null' TERM
wait $child
code=$?
# A signal ends `wait` before the child: ask again until the child itself is gone.
while kill -0 $child 2>/dev/null; do
  wait $child
  code=$?
done
finish $code
exit $code
