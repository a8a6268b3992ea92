#!/bin/bash
# Asks the metadata service as programs do; prints what it says.
set -uo pipefail
base=http://169.254.169.254/latest
ask() { curl -sS -w ' %{http_code}\n' "$@" | sed 's/^ //'; }
ask $base/meta-data/instance-id
ask -X PUT $base/api/token
token=$(curl -sS -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' $base/api/token)
for path in instance-id local-ipv4 iam/security-credentials/ no-such-thing; do
  ask -H "X-aws-ec2-metadata-token: $token" $base/meta-data/$path
done
if [ "$(curl -sS -H "X-aws-ec2-metadata-token: $token" $base/user-data | head -c 2 | od -An -tx1)" = " 1f 8b" ]; then echo gzip; fi
