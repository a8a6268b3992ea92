#!/bin/bash
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --output=/fsx/ring-%j.out
# A job as a user types it: each rank says where it runs, and the sum of all ranks proves that they met.
set -euo pipefail
echo "begun $SLURM_JOB_ID on $SLURM_JOB_NODELIST restart ${SLURM_RESTART_COUNT:-0}" >>/fsx/tally
/opt/amazon/openmpi/bin/mpirun --bind-to none --mca pml ob1 --mca btl self,vader,tcp --mca mpi_yield_when_idle 1 \
  python3 /fsx/ring.py "$@"
