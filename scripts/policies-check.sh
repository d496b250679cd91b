#!/usr/bin/env bash
# Checks network policies: those that the broker makes for Cilium against the schema of its resource, and the evaluation
# against that of cyclonus (github.com/mattfenwick/cyclonus). Needs Go. With KUBECONFIG those for Kubernetes
# are applied to that cluster as a dry run; their namespaces have to exist there.
# scripts/cyclonus/main.go is built once, into ${XDG_CACHE_HOME:-$HOME/.cache}. Its go.mod names the version, which
# Renovate updates as that of every Go module. The modules below it are those that cyclonus names, so that their list
# and checksums are not kept here; Go verifies them with its checksum database.
set -euo pipefail
cd "$(dirname "$0")/.."

source=scripts/cyclonus
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cluster-telemetry-broker
cyclonus=$cache/cyclonus-$(cat "$source/go.mod" "$source/main.go" | cksum | cut -d' ' -f1)
if [[ ! -x $cyclonus ]]; then
  mkdir -p "$cache"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cp "$source/go.mod" "$source/main.go" "$work"
  # Go completes go.mod and go.sum, so it works on a copy. The flags are those of helm in chart-check.sh, so that Go
  # builds what both need once.
  CGO_ENABLED=0 go build -C "$work" -mod=mod -gcflags='all=-l -dwarf=false' -ldflags='-s -w' -o "$cyclonus.$$" .
  mv "$cyclonus.$$" "$cyclonus"
fi

schemas=$cache/cilium-schemas-4.0.0
if [[ ! -f $schemas/complete ]]; then
  npm install --silent --no-save --ignore-scripts --no-audit --no-fund --prefix "$schemas" @kubernetes-models/cilium@4.0.0
  touch "$schemas/complete"
fi
node scripts/cilium-schema.mjs "$schemas" test/fixtures/policies/*.cilium.yaml

if [[ -n ${KUBECONFIG:-} ]]; then
  for file in test/fixtures/policies/*.kubernetes.yaml; do kubectl apply --dry-run=server --validate=strict -f "$file"; done
fi

CYCLONUS=$cyclonus npm test test/policies/agreement.test.ts
