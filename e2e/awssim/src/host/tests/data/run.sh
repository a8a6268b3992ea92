#!/bin/bash
set -euo pipefail
echo "$GREETING"
echo "hpcops: mpirun-start epoch-ms=$(date +%s%3N)"
mpirun --bind-to none python3 -c '
import os, socket
from mpi4py import MPI
comm = MPI.COMM_WORLD
for line in comm.gather("rank %d of %d on %s as %d" % (comm.rank, comm.size, socket.gethostname(), os.getuid())) or []:
    print(line)
'
