#!/bin/bash
# User data: unpacks what follows the marker and boots the node with it.
set -euo pipefail
umask 022
mkdir -p /opt/hpcops
sed '1,/^__PAYLOAD__$/d' "$0" | base64 -d | tar -xz --no-same-owner -C /opt/hpcops
exec /bin/bash /opt/hpcops/boot.sh
