#!/bin/bash
# Boots one node in named steps. Each step leaves a record; the first one that fails ends the boot.
# Every step may run again: after a reboot, on a replaced head, or by hand.
set -euo pipefail
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
here=/opt/hpcops
state=/hpcops/state
sys=${HPCOPS_SYS:-/sys}
logs=/var/log/hpcops
patience=600 # seconds a step waits for something another machine has to do
mkdir -p "$logs"
if [ -r /etc/environment ]; then
  set -a
  # shellcheck source=/dev/null
  . /etc/environment
  set +a
fi

mapfile -t config < <(python3 $here/node.py get role headIp stateVolumeId image.slurmPrefix multithreading localScratch)
role=${config[0]} head=${config[1]} volume=${config[2]} slurm=${config[3]} threads=${config[4]} scratch=${config[5]}

# until_true SECONDS COMMAND...: tries until the command succeeds; the last try speaks.
until_true() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >"$logs/last-try" 2>&1; do
    if [ $SECONDS -ge $deadline ]; then
      cat "$logs/last-try"
      echo "gave up: $*"
      return 1
    fi
    sleep 0.5
  done
}

# unit NAME COMMAND [LINE]...: a service that restarts, and whose restart leaves jobs alone.
unit() {
  local name=$1 command=$2
  shift 2
  {
    printf '[Unit]\nDescription=hpcops %s\n[Service]\nExecStart=%s\n' "$name" "$command"
    printf '%s\n' EnvironmentFile=-/etc/environment Restart=always RestartSec=2 KillMode=process \
      LimitNOFILE=1024000 LimitMEMLOCK=infinity LimitSTACK=infinity "$@"
  } >"/etc/systemd/system/$name.service"
  systemctl daemon-reload
  systemctl restart "$name"
}

step_doctor() {
  local sick=0 what
  need() {
    if ! command -v "$1" >/dev/null; then
      echo "the image lacks $2: no $1"
      sick=1
    fi
  }
  need "$slurm/bin/scontrol" Slurm
  need munged munge
  while IFS= read -r what; do need "$what/bin/mpirun" "an MPI"; done < <(python3 $here/node.py mpi)
  if python3 $here/node.py storage | grep -q .; then need mount.lustre "the Lustre client"; fi
  if [ "$role" = head ]; then
    need "$slurm/sbin/slurmctld" Slurm
    need exportfs "the NFS server"
    need mkfs.ext4 e2fsprogs
  else
    need "$slurm/sbin/slurmd" Slurm
    need mount.nfs4 "the NFS client"
    if python3 $here/node.py disks | grep -q .; then need vgcreate LVM; fi
  fi
  return $sick
}

# An agent that found no credentials at its start sleeps for up to an hour.
step_agent() {
  if python3 $here/node.py credentials; then return; fi
  until_true 300 python3 $here/node.py credentials
  systemctl restart amazon-ssm-agent
}

step_users() {
  if [ "$role" = head ]; then until_true 300 python3 $here/head.py take-users; fi
  python3 $here/users.py
  # shellcheck disable=SC2016 # $PATH is for the login shell
  printf 'export PATH=%s/bin:$PATH\n' "$slurm" >/etc/profile.d/hpcops.sh
}

# Only a volume without any signature and without any byte in its first MiB is blank.
step_state_volume() {
  local device=/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_${volume/-/} found=0
  until_true $patience test -b "$device"
  mkdir -p $state
  if ! mountpoint -q $state; then
    blkid -p "$device" || found=$?
    if [ $found = 2 ] && cmp -s -n 1048576 "$device" /dev/zero; then
      mkfs.ext4 -q -L hpcops-state "$device"
    fi
    mount -o noatime "$device" $state
  fi
  mkdir -p $state/{home,boot,nodes,keys}
}

step_state_mount() {
  mkdir -p $state
  mountpoint -q $state || until_true $patience mount -t nfs4 -o hard,noatime "$head:$state" $state
}

# What jobs with many ranks, large stacks and pinned memory need, and ssh between the nodes without questions.
step_limits() {
  mkdir -p /etc/security/limits.d /etc/ssh/sshd_config.d /etc/ssh/ssh_config.d
  printf '* - %s\n' "memlock unlimited" "stack 1024000" "nofile 1024000" >/etc/security/limits.d/99-hpcops.conf
  printf 'AuthorizedKeysFile .ssh/authorized_keys %s\n' "$state/keys/%u" >/etc/ssh/sshd_config.d/50-hpcops.conf
  printf 'Host %s\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n' \
    "$(python3 $here/node.py hosts-pattern)" >/etc/ssh/ssh_config.d/50-hpcops.conf
  if systemctl is-active --quiet firewalld; then systemctl disable --now firewalld; fi
  systemctl restart sshd
}

# Types that refuse the CPU option at launch: all but the first thread of each core go off-line.
step_threads() {
  local cpu first
  [ "$threads" = False ] || return 0
  for cpu in "$sys"/devices/system/cpu/cpu[0-9]*; do
    [ -e "$cpu/topology/thread_siblings_list" ] || continue
    first=$(cut -d, -f1 "$cpu/topology/thread_siblings_list" | cut -d- -f1)
    if [ "${cpu##*/cpu}" != "$first" ]; then echo 0 >"$cpu/online"; fi
  done
}

# The disks that come and go with the instance, as one file system.
step_local_scratch() {
  local disks device=/dev/hpcops/scratch
  [ -n "$scratch" ] || return 0
  mapfile -t disks < <(python3 $here/node.py disks)
  [ ${#disks[@]} -gt 0 ] || return 0
  mkdir -p "$scratch"
  if ! mountpoint -q "$scratch"; then
    if [ ! -b $device ]; then
      vgcreate -y -W y hpcops "${disks[@]}"
      lvcreate -y -W y -n scratch -i ${#disks[@]} -l 100%FREE hpcops
    fi
    [ -n "$(blkid -s TYPE -o value $device)" ] || mkfs.ext4 -q -E nodiscard $device
    mount -o noatime,nodiratime "$device" "$scratch"
  fi
  chmod 1777 "$scratch"
}

step_storage() {
  local path source
  while IFS=$'\t' read -r path source; do
    mkdir -p "$path"
    mountpoint -q "$path" || until_true $patience mount -t lustre -o noatime,flock "$source" "$path"
    # A new file system is root's alone: open it once, and keep the place of attempts root's.
    if [ "$role" = head ] && [ ! -d "$path/.hpcops" ]; then
      mkdir -m 755 "$path/.hpcops"
      chmod 1777 "$path"
    fi
  done < <(python3 $here/node.py storage)
}

step_export() {
  mkdir -p /etc/exports.d
  echo "$state *(rw,no_root_squash,no_subtree_check)" >/etc/exports.d/hpcops.exports
  systemctl restart nfs-server
  exportfs -ra
}

step_munge() {
  local key=$state/munge.key
  if [ "$role" = head ] && [ ! -s $key ]; then
    (umask 377 && head -c 1024 /dev/urandom >$key.new && mv $key.new $key)
  fi
  install -d -m 700 -o munge -g munge /etc/munge /var/lib/munge /var/log/munge
  install -m 400 -o munge -g munge $key /etc/munge/munge.key
  systemctl stop munge || true # of the distribution: it may run with a key of its own
  unit hpcops-munge "$(command -v munged) --foreground" User=munge RuntimeDirectory=munge RuntimeDirectoryMode=0755
  until_true 120 munge_answers
}

munge_answers() { munge -n | unmunge; }

step_slurm() {
  local owner=root
  if getent passwd slurm >/dev/null; then owner=slurm; fi
  install -d -m 700 -o $owner $state/slurm
  # Slurm resumes and suspends nodes as its own user.
  install -d -m 755 -o $owner $state/demand
  chown -R $owner $state/demand
  touch $logs/power
  chown $owner $logs/power
  mkdir -p "$slurm/etc"
  python3 $here/head.py slurm-conf $owner >"$slurm/etc/slurm.conf"
  unit slurmctld "$slurm/sbin/slurmctld -D"
  until_true 120 slurm_answers
}

slurm_answers() { "$slurm/bin/scontrol" ping | grep -w UP; }

# The head publishes names and tells Slurm our address before slurmd may register.
step_hosts() {
  until_true $patience python3 $here/node.py hosts
  unit hpcops-hosts "/usr/bin/python3 $here/node.py watch"
}

step_slurmd() {
  local name
  name=$(python3 $here/node.py name)
  mkdir -p /var/spool/slurmd
  # -b: a job may have been given this node, and slurmctld may have called for it, while it was booting already.
  unit slurmd "$slurm/sbin/slurmd -D -b --conf-server $head -N $name" Delegate=yes
}

step_register() {
  until_true 300 python3 $here/node.py ready
}

step() {
  local begin code
  begin=$(date +%s.%N)
  set +e
  (
    set -e
    "step_${1//-/_}"
  ) >"$logs/$1" 2>&1 </dev/null
  code=$?
  set -e
  python3 $here/node.py record "$1" "$begin" $code "$logs/$1"
  [ $code = 0 ]
}

main() {
  local name steps
  until_true 120 python3 $here/node.py identify
  # cloud-init runs user data once; a reboot comes back through here.
  if [ -d /var/lib/cloud/scripts/per-boot ]; then ln -sf $here/boot.sh /var/lib/cloud/scripts/per-boot/hpcops; fi
  if [ "$role" = head ]; then
    # First, so that it can tell of a boot that fails.
    unit hpcops-head "/usr/bin/python3 $here/head.py loop"
    steps=(doctor agent state-volume users limits storage export munge slurm)
  else
    steps=(doctor agent state-mount users limits threads local-scratch storage munge hosts slurmd register)
  fi
  for name in "${steps[@]}"; do step "$name"; done
  python3 $here/node.py record ready "$(date +%s.%N)" 0 /dev/null
}

main
