#!/bin/sh
# Becomes a body: runs as PID 1 in new mount, UTS, IPC, network and PID namespaces, in the rack's folder.
# Says "ready PID", waits for its network cable, then turns into the image's init.
set -eu
body=$1 hostname=$2 address=$3 router=$4 cpus=$5 image=$6 marker=$7
mkdir -p "$body/disk"
mount -t tmpfs -o mode=755 body "$body/disk"
mkdir "$body/disk/upper" "$body/disk/work" "$body/disk/root"
mount -t overlay overlay -o "lowerdir=layers/$image:/,upperdir=$body/disk/upper,workdir=$body/disk/work" "$body/disk/root"
rack=$PWD
cd "$body/disk/root"
mkdir -p proc sys dev run tmp root home mnt media srv usr/local/bin usr/local/sbin usr/local/lib var/log var/tmp \
  var/cache \
  var/lib/cloud/instance/scripts var/lib/cloud/scripts/per-boot var/spool etc/systemd/system .old
chmod 1777 var/tmp

# /proc of its own; what in it reaches the whole machine is read-only or not there.
mount -t proc proc proc
for path in sys irq bus; do
  if [ -d "proc/$path" ]; then
    mount --bind "proc/$path" "proc/$path"
    mount -o remount,bind,ro "proc/$path"
  fi
done
if [ -e proc/sysrq-trigger ]; then mount --bind /dev/null proc/sysrq-trigger; fi

# A private /dev: no disk of the machine. Volumes are added when they are attached.
mount -t tmpfs -o mode=755 dev dev
while read -r name major minor; do mknod -m 666 "dev/$name" c "$major" "$minor"; done <<NODES
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
NODES
mkdir -p dev/pts dev/shm dev/disk/by-id
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr

# A /sys of its own: the processors of the instance type, writable, and nothing of the machine's.
mount -t tmpfs -o mode=755 sys sys
cp -R "$rack/sys/$cpus/." sys/

mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mkdir -m 700 run/awssim
mount --bind "$rack/$body/share" run/awssim

hostname "$hostname"
echo "$hostname" >etc/hostname
echo "127.0.0.1 localhost localhost.localdomain" >etc/hosts
printf 'search %s\nnameserver 169.254.169.253\n' "${hostname#*.}" >etc/resolv.conf
ip link set lo up
read -r pid _ </proc/self/stat # the old /proc: the host's number of this process
echo "ready $pid"
read -r cable
[ "$cable" = connected ]
ip address add "$address" dev eth0
ip link set eth0 up
ip route add default via "$router"

pivot_root . .old
umount -l /.old
rmdir /.old
cd /
exec setpriv --bounding-set "$CAPABILITIES" --inh-caps -all /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /usr/bin/python3 /usr/lib/awssim/init.py "$body" "$marker" </dev/null >&2
