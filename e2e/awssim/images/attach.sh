#!/bin/sh
# Runs in a VPC: plugs a body in. LINK BODY_PID MAC ROUTER/PREFIX
set -eu
ip address replace "$4" dev vpc
ip link add "$1" type veth peer name eth0 address "$3" netns "$2"
ip link set "$1" master vpc up
