#!/bin/sh
# PID 1 of a simulator's own PID and mount namespace: the rack that its bodies stand in.
# It lives as long as the simulator holds the other end of its input. When it goes, the kernel takes every
# body and every network with it, and with the last process go the mounts: nothing has a name outside.
set -eu
folder=$1 marker=$2
mount -t tmpfs -o mode=700 awssim "$folder"
mount --make-shared "$folder"
cd "$folder"
read -r pid _ </proc/self/stat # /proc is still the host's: so is the number
echo "ready $pid"
trap '' CHLD # orphans are reaped by the kernel
# The marker is for whoever looks for processes of this simulator; cat comes to it after its input's end.
exec cat - "$marker" >/dev/null
