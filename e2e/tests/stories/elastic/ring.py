"""Every rank adds its number; rank 0 prints the sum and the hosts. With an argument it computes for so many seconds."""
import os
import sys
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
if len(sys.argv) > 1:
    time.sleep(float(sys.argv[1]))
total = world.allreduce(world.rank)
hosts = world.gather(os.environ["SLURMD_NODENAME"])
if world.rank == 0:
    print("sum %d hosts %s" % (total, " ".join(sorted(set(hosts)))), flush=True)
