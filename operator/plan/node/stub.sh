#!/bin/bash
# User data: unpacks what follows the marker and boots the node with it. cloud-init has inflated the whole before.
set -euo pipefail
umask 022
mkdir -p /opt/hpcops
sed '1,/^__PAYLOAD__$/d' "$0" | python3 -c '
import json, os, sys
for name, text in json.load(sys.stdin.buffer).items():
    path = os.path.join("/opt/hpcops", name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)'
exec /bin/bash /opt/hpcops/boot.sh
