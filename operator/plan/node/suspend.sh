#!/bin/sh
# slurmctld calls this with a list of nodes.
exec python3 /opt/hpcops/power.py suspend "$1" >>/var/log/hpcops/power 2>&1
