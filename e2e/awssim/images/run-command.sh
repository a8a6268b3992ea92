#!/bin/sh
# What the SSM agent does with a Run Command document's script: COMMAND_ID [WORKING_DIRECTORY], the script on its input.
folder=/var/lib/amazon/ssm/document/orchestration/$1/awsrunShellScript/0.awsrunShellScript
umask 077
mkdir -p "$folder"
cat >"$folder/_script.sh"
chmod 700 "$folder/_script.sh"
umask 022
cd "${2:-/usr/bin}" || exit 1
exec sh -c "$folder/_script.sh" </dev/null
