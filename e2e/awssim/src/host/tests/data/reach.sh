#!/bin/bash
# A boot script that reaches for the machine: switches processors off, tunes the kernel, looks for disks.
# Prints what it got hold of; an empty output is right. FOLDER is a folder of the machine.
set -uo pipefail
shopt -s nullglob
for cpu in /sys/devices/system/cpu/cpu[1-9]*; do echo 0 >"$cpu/online"; done
echo never >/sys/kernel/mm/transparent_hugepage/enabled
echo 4096 >/sys/block/nvme0n1/queue/read_ahead_kb
(echo 1 >/proc/sys/vm/drop_caches) 2>/dev/null && echo "wrote to /proc/sys"
(echo h >/proc/sysrq-trigger) 2>/dev/null
for device in /dev/sd* /dev/vd* /dev/xvd* /dev/nvme* /dev/loop* /dev/dm-* /dev/mapper /dev/mem /dev/kmsg; do
  if [ -e "$device" ]; then echo "sees $device"; fi
done
while read -r major minor _ name; do
  if [ -n "$name" ] && mknod "/dev/$name" b "$major" "$minor" 2>/dev/null; then echo "made $name"; fi
done < <(tail -n +3 /proc/partitions)
for path in "$FOLDER" /root/.ssh /etc/munge/munge.key /home/*/.bashrc; do if [ -e "$path" ]; then echo "reads $path"; fi; done
for program in sbatch slurmctld mpirun; do if command -v "$program"; then echo "finds $program without its prefix"; fi; done
exit 0
