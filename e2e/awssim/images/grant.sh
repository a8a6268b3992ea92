#!/bin/sh
# Runs in the rack: shows a body a folder or a disk, by mounting it where the body's share propagates from.
# BODY NAME folder PATH | BODY NAME disk DEVICE TYPE
set -eu
mkdir -p "$1/share/$2"
case $3 in
folder) mount --bind "$4" "$1/share/$2" ;;
disk) mount -t "$5" -o noatime "$4" "$1/share/$2" ;;
esac
