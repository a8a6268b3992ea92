#!/usr/bin/env bash
# Builds the real kube-apiserver, kube-controller-manager, etcd and helm from the modules pinned beside this file, once per
# machine, and prints the folder that holds them. The folder's name is a key over every pin and the toolchain, so a changed
# pin is a new folder and an old one is never overwritten. Cold about 8 minutes on two cores; cached well under a second.
set -euo pipefail
made_for=
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/hpcops/controlplane
export GOFLAGS=-mod=readonly GOTOOLCHAIN=local
unset GOWORK

command -v go >/dev/null || { echo "go is missing: install Go 1.26 or newer" >&2; exit 1; }

key=$({ go env GOVERSION GOOS GOARCH; cat "$here"/*/go.mod "$here"/*/go.sum "${BASH_SOURCE[0]}"; } | sha256sum | cut -c1-16)
mkdir -p "$cache"
if [ -d "$cache/$key" ]; then echo "$cache/$key"; exit 0; fi

# One builder at a time; whoever waited finds the folder made.
exec 9>"$cache/$key.lock"
flock 9
if [ -d "$cache/$key" ]; then echo "$cache/$key"; exit 0; fi

work=$(mktemp -d "$cache/$key.XXXXXX")
trap 'rm -rf "$work"' EXIT

# pinned MODULE FOLDER: the version that FOLDER/go.mod asks for
pinned() { (cd "$here/$2" && go list -m -f '{{.Version}}' "$1"); }
# build FOLDER NAME PACKAGE [LDFLAGS]
build() {
  local start=$SECONDS
  (cd "$here/$1" && nice -n 5 go build -ldflags "-s -w ${4:-}" -o "$work/$2" "$3")
  echo "built $2 in $((SECONDS - start)) s" >&2
}

kubernetes=$(pinned k8s.io/kubernetes kubernetes)
stamp="-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/client-go/pkg/version.gitVersion=$kubernetes"
build kubernetes kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver "$stamp"
build kubernetes kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager "$stamp"
build etcd etcd go.etcd.io/etcd/server/v3
helm=$(pinned helm.sh/helm/v3 helm)
# Helm believes to be as old as Kubernetes 1.20 unless told which Kubernetes it was made for.
minor=$(cut -d. -f2 <<<"$kubernetes")
for package in chartutil lint/rules; do
  made_for+=" -X helm.sh/helm/v3/pkg/$package.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$package.k8sVersionMinor=$minor"
done
build helm helm helm.sh/helm/v3/cmd/helm "-X helm.sh/helm/v3/internal/version.version=$helm$made_for"

# The rename is what makes the folder complete: a killed build leaves none.
mv "$work" "$cache/$key"
trap - EXIT
echo "$cache/$key"
