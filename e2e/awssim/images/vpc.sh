#!/bin/sh
# Holds the network of one account and region: a bridge that leads nowhere else. MARKER
set -eu
ip link set lo up
# Without an address of its own a bridge takes its ports' lowest, and changes under its neighbours' feet.
ip link add vpc address 02:00:00:00:00:01 type bridge
ip link set vpc up
ip address add 169.254.169.254/32 dev vpc # instance metadata
ip address add 169.254.169.253/32 dev vpc # the resolver
ip address add 169.254.170.1/32 dev vpc   # the endpoints of the simulated services
echo 1 >/proc/sys/net/ipv4/ip_forward     # of this namespace: subnets reach each other, nothing else
read -r pid _ </proc/self/stat
echo "ready $pid"
exec cat - "$1" >/dev/null
