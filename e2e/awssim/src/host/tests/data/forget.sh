#!/bin/bash
# The scheduler restarts with the state it had before the job started; nodes may be drained again by that.
set -uo pipefail
systemctl stop slurmctld
cp /root/pending /hpcops/state/slurm/job_state
rm -f /hpcops/state/slurm/job_state.old
systemctl start slurmctld
until /opt/slurm/bin/scontrol ping | grep -qw UP; do sleep 0.1; done
/opt/slurm/bin/scontrol update nodename=compute-[1-2] state=resume
exit 0
