module cluster-telemetry-broker/scripts/cyclonus

go 1.22.0

require github.com/mattfenwick/cyclonus v0.5.6
