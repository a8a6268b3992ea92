#!/bin/sh
# Runs in the rack and a VPC: takes away what a dead body leaves. BODY LINK
set -eu
ip link delete "$2" 2>/dev/null || true # gone with the body's network, if the kernel was faster
for mounted in "$1"/share/m*; do
  if [ -d "$mounted" ]; then umount --lazy "$mounted"; fi
done
rm -rf "$1"
