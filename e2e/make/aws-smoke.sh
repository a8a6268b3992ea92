#!/usr/bin/env bash
# One head and two small nodes on real AWS, for a person with an account: made, used for one run, given back. The operator
# itself refuses more than three instances or two dollars an hour. Costs well under a dollar; takes about 30 minutes.
# It keeps what went over the wire in .lab/smoke, to be turned into fixtures.
#
# Needs: credentials in the environment (AWS_ACCESS_KEY_ID, ...), AWS_REGION, and
#   HPCOPS_SMOKE_SUBNET        a private subnet with a way out (NAT gateway or endpoints)
#   HPCOPS_SMOKE_HEAD_PROFILE  instance profile of the head   (docs/iam)
#   HPCOPS_SMOKE_NODE_PROFILE  instance profile of the nodes  (docs/iam)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
: "${AWS_ACCESS_KEY_ID:?}" "${AWS_SECRET_ACCESS_KEY:?}" "${AWS_REGION:?}"
: "${HPCOPS_SMOKE_SUBNET:?}" "${HPCOPS_SMOKE_HEAD_PROFILE:?}" "${HPCOPS_SMOKE_NODE_PROFILE:?}"
[ -z "${AWS_ENDPOINT_URL:-}" ] || { echo "AWS_ENDPOINT_URL is set: this is for real AWS" >&2; exit 1; }
if [ "${HPCOPS_SMOKE_YES:-}" != 1 ]; then
  read -r -p "This starts 3 instances in $AWS_REGION of the account of $AWS_ACCESS_KEY_ID. Type yes: " answer
  [ "$answer" = yes ] || exit 1
fi

make build
if [ -f .lab/state.json ]; then target/debug/hpc-lab down; fi
manifest=$(mktemp)
sed -e "s/@REGION@/$AWS_REGION/; s/@SUBNET@/$HPCOPS_SMOKE_SUBNET/" \
  -e "s/@HEAD_PROFILE@/$HPCOPS_SMOKE_HEAD_PROFILE/; s/@NODE_PROFILE@/$HPCOPS_SMOKE_NODE_PROFILE/" \
  e2e/make/aws-smoke.yaml >"$manifest"
target/debug/hpc-lab up --real-aws
# shellcheck source=/dev/null
. .lab/env

give_back() {
  echo "giving everything back"
  kubectl delete --filename "$manifest" --ignore-not-found --timeout 30m || {
    echo "NOT ALL WAS GIVEN BACK: the operator still runs, .lab/env still works; look at: kubectl describe hpccluster smoke" >&2
    return 1
  }
  mkdir -p .lab/smoke
  cp .lab/run/pods/*/operator.log .lab/smoke/
  target/debug/hpc-lab down
  rm -f "$manifest"
  echo "what went over the wire is in .lab/smoke/operator.log"
}
trap give_back EXIT

kubectl apply --filename "$manifest"
kubectl wait --for condition=Ready hpccluster/smoke --timeout 25m
kubectl get hpcclusters
