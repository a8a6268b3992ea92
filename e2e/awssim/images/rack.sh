#!/bin/sh
# PID 1 of a simulator's own PID, mount and network namespace: the rack that its bodies stand in.
# It lives as long as the simulator holds the other end of its input. When it goes, the kernel takes every
# body with it, and with the last process go the mounts, the bridge and the addresses.
set -eu
folder=$1 marker=$2
mount -t tmpfs -o mode=700 awssim "$folder"
mount --make-shared "$folder"
cd "$folder"
ip link set lo up
ip link add vpc type bridge
ip link set vpc up
ip address add 169.254.169.253/32 dev vpc # the VPC's resolver, as on AWS
ip address add 169.254.170.1/32 dev vpc   # the endpoints of the simulated services
echo 1 >/proc/sys/net/ipv4/ip_forward     # of this network namespace: subnets reach each other, nothing else
read -r pid _ </proc/self/stat            # /proc is still the host's: so is the number
echo "ready $pid"
trap '' CHLD # orphans are reaped by the kernel
# The marker is for whoever looks for processes of this simulator; cat comes to it after its input's end.
exec cat - "$marker" >/dev/null
