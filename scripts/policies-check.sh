#!/usr/bin/env bash
# Compares the evaluation of network policies with that of cyclonus (github.com/mattfenwick/cyclonus). Needs Go.
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
  # Go completes go.mod and go.sum, so it works on a copy.
  go build -C "$work" -mod=mod -trimpath -ldflags='-s -w' -o "$cyclonus.$$" .
  mv "$cyclonus.$$" "$cyclonus"
fi

CYCLONUS=$cyclonus npm test test/policies/agreement.test.ts
