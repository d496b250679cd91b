#!/usr/bin/env bash
# Checks the chart with helm: lints and renders every toggle, validates the results against the Kubernetes schemas, and
# tries every refusal. Then runs the tests of the chart and of the commands in docs/install.md.
# Needs `npm run build`, Go and Python. Helm and the schemas are fetched once, into ${XDG_CACHE_HOME:-$HOME/.cache}.
set -euo pipefail
cd "$(dirname "$0")/.."

# renovate: helm/helm
helm_version=v3.19.0
schemas_version=1.37.0
kube_versions=(1.27 1.31 1.34)
# A helm built from its module assumes a very old cluster by default.
as=(--namespace telemetry --kube-version 1.34.0 --values test/chart/image.yaml)

cache=${XDG_CACHE_HOME:-$HOME/.cache}/cluster-telemetry-broker
helm=$cache/helm-$helm_version
if [[ ! -x $helm ]]; then
  # Without inlining and debug information, helm is built in little more than half of the time.
  CGO_ENABLED=0 GOBIN=$cache/bin go install -gcflags='all=-l -dwarf=false' -ldflags='-s -w' \
    "helm.sh/helm/v3/cmd/helm@$helm_version"
  mv "$cache/bin/helm" "$helm"
fi
venv=$cache/kubernetes-validate-$schemas_version
if [[ ! -f $venv/complete ]]; then
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "kubernetes-validate==$schemas_version"
  touch "$venv/complete"
fi

# Helm runs hundreds of times, for less than a tenth of a second each: collecting garbage would be a quarter of that.
export GOGC=off

chart=wrangler-free-deploy/chart
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rendered=$work/rendered
mkdir "$rendered"

# render NAME RELEASE [values file]
render() {
  "$helm" lint --strict --quiet "${as[@]}" ${3:+--values "$3"} "$chart" || { echo "lint: $1" >&2; exit 1; }
  "$helm" template "$2" "$chart" "${as[@]}" ${3:+--values "$3"} > "$rendered/$1.yaml" \
    || { echo "template: $1" >&2; exit 1; }
}
render default kguardian
for file in test/chart/toggles/*.yaml; do render "$(basename "$file" .yaml)" kguardian "$file"; done
# The longest release name that Helm allows.
render long-name "a$(printf 'b%.0s' {1..52})" test/chart/toggles/jobs-external.yaml
echo "chart: $(ls "$rendered" | wc -l) renderings linted"

# The first line of each file is the expected error.
for file in test/chart/refusals/*.yaml; do
  sentence=$(sed -n '1s/^# //p' "$file")
  if "$helm" template kguardian "$chart" "${as[@]}" --values "$file" > "$work/out" 2> "$work/err"; then
    echo "refusal: $file is accepted" >&2
    exit 1
  fi
  grep -qF -- "$sentence" "$work/err" \
    || { echo "refusal: $file gives another error:" >&2; cat "$work/err" >&2; exit 1; }
done
echo "chart: $(ls test/chart/refusals | wc -l) refusals"

"$venv/bin/python" scripts/chart-schemas.py "$rendered" "${kube_versions[@]}"
# Not of the chart, but by the same schemas: the network policies that the broker makes.
"$venv/bin/python" scripts/chart-schemas.py test/fixtures/policies "${kube_versions[@]}"

HELM=$helm CHART_RENDERED=$rendered npm test test/chart test/install/docs.test.ts
