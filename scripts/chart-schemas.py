"""Validates rendered manifests against the OpenAPI schemas of Kubernetes: chart-schemas.py FOLDER VERSION...

Equal manifests are validated once. Unknown fields are faults. Custom resources have no schema here; the tests check
those.
"""

import json
import pathlib
import sys

import kubernetes_validate
import yaml

CUSTOM = {"ServiceMonitor", "PrometheusRule", "HTTPRoute", "CiliumNetworkPolicy"}

folder, *versions = sys.argv[1:]
# The parser in C is faster, where it was built.
loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
checked = faults = 0
seen = set()
for path in sorted(pathlib.Path(folder).glob("*.yaml")):
    for manifest in yaml.load_all(path.read_text(), loader):
        if manifest is None or manifest["kind"] in CUSTOM:
            continue
        text = json.dumps(manifest, sort_keys=True, default=str)
        if text in seen:
            continue
        seen.add(text)
        for version in versions:
            checked += 1
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except Exception as error:  # any failure is a fault of this manifest
                faults += 1
                rule = str(error).split("\n", 1)[0]
                name = f"{manifest['kind']}/{manifest['metadata']['name']}"
                print(f"{path.name} {name} {version}: {rule}", file=sys.stderr)
validated = f"{len(seen)} manifests validated for each of {len(versions)} versions of Kubernetes"
print(f"chart: {folder}: {validated}; {faults} faults")
sys.exit(1 if faults or not checked else 0)
