#!/bin/bash
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --output=/fsx/ring-%j.out
# A job that runs until the story lets it go: it says where it began, and how often.
set -euo pipefail
echo "$SLURM_JOB_ID begun on $SLURM_JOB_NODELIST restart ${SLURM_RESTART_COUNT:-0}" >>/fsx/tally
until [ -e "/fsx/go-$SLURM_JOB_ID" ]; do sleep 0.2; done
echo "held on $SLURM_JOB_NODELIST"
