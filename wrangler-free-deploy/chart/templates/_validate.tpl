{{/* What the values must not say, with a sentence for each. */}}
{{- define "telemetry-broker.validate" -}}
{{- include "telemetry-broker.validateDatabase" . -}}
{{- include "telemetry-broker.validateAuth" . -}}
{{- include "telemetry-broker.validateBroker" . -}}
{{- include "telemetry-broker.validateController" . -}}
{{- include "telemetry-broker.validateSeccomp" . -}}
{{- include "telemetry-broker.validateSupplychain" . -}}
{{- end -}}

{{- define "telemetry-broker.validateDatabase" -}}
{{- $database := .Values.database -}}
{{- $isNamed := or $database.existingSecret $database.host -}}
{{- if and .Values.postgres.enabled $isNamed -}}
{{- fail "Both postgres.enabled and a database are given: set postgres.enabled to false to use the database." -}}
{{- end -}}
{{- if not (or .Values.postgres.enabled $isNamed) -}}
{{- fail "There is no database: give database.existingSecret or database.host, or set postgres.enabled for a trial." -}}
{{- end -}}
{{- if not .Values.postgres.enabled -}}
{{- if and $database.caSecret (not (has $database.sslMode (list "verify-ca" "verify-full"))) -}}
{{- fail "database.caSecret is given and database.sslMode does not ask who signed the server: set it to verify-full or verify-ca." -}}
{{- end -}}
{{- if and (eq $database.sslMode "verify-ca") (not $database.caSecret) -}}
{{- fail "database.sslMode verify-ca needs database.caSecret: of all authorities any would do." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateAuth" -}}
{{- $auth := .Values.broker.auth -}}
{{- if and (ne $auth.mode "none") (not $auth.existingSecret) -}}
{{- fail (printf "broker.auth.mode %s needs broker.auth.existingSecret, the secret with the tokens." $auth.mode) -}}
{{- end -}}
{{- if and (eq $auth.mode "none") $auth.existingSecret -}}
{{- fail "broker.auth.existingSecret is given and broker.auth.mode is none, which asks nobody for a token: set the mode to scoped." -}}
{{- end -}}
{{- if and .Values.frontend.enabled (eq $auth.mode "shared") (not .Values.frontend.brokerAuth.allowSharedToken) -}}
{{- fail "The edge proxy would hold a token that also writes: use broker.auth.mode scoped, or set frontend.brokerAuth.allowSharedToken." -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateBroker" -}}
{{- with (.Values.broker.resources.limits | default dict).memory -}}
{{- if lt (include "telemetry-broker.mebibytes" (list . "broker.resources.limits.memory") | int64) 256 -}}
{{- fail "broker.resources.limits.memory must be at least 256Mi." -}}
{{- end -}}
{{- end -}}
{{- if and .Values.evaluator.enabled (not .Values.evaluator.url) -}}
{{- fail "evaluator.enabled needs evaluator.url, the address of the policy evaluator." -}}
{{- end -}}
{{- $scaling := .Values.broker.autoscaling -}}
{{- if and $scaling.enabled (gt (int64 $scaling.minReplicas) (int64 $scaling.maxReplicas)) -}}
{{- fail "broker.autoscaling.minReplicas must not be more than maxReplicas." -}}
{{- end -}}
{{- if and $scaling.enabled (not (.Values.broker.resources.requests | default dict).cpu) -}}
{{- fail "broker.autoscaling.enabled needs broker.resources.requests.cpu: it is the whole that the target is a share of." -}}
{{- end -}}
{{- if and .Values.jobs.schedules (ne .Values.jobs.mode "external") -}}
{{- fail "jobs.schedules counts only with jobs.mode external: in the broker the intervals decide." -}}
{{- end -}}
{{- $known := list -}}
{{- range .Files.Get "files/jobs.json" | fromJsonArray }}{{ $known = append $known .name }}{{ end -}}
{{- range $name, $schedule := .Values.jobs.schedules -}}
{{- if not (has $name $known) -}}
{{- fail (printf "jobs.schedules: there is no job %s; the jobs are %s." $name (join ", " $known)) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.prometheusRule.enabled (not .Values.serviceMonitor.enabled) -}}
{{- fail "prometheusRule.enabled needs serviceMonitor.enabled: the alerts ask for what it scrapes." -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateController" -}}
{{- if and .Values.controller.enabled (not (and .Values.controller.image.repository .Values.controller.image.tag)) -}}
{{- fail "controller.enabled needs controller.image.repository and controller.image.tag: this chart comes without the image." -}}
{{- end -}}
{{- if and .Values.controller.runtimeInventory.capabilities (eq .Values.controller.runtimeInventory.mode "off") -}}
{{- fail "controller.runtimeInventory.capabilities needs the mode exec or full." -}}
{{- end -}}
{{- if and (eq .Values.syscalls.captureLevel "custom") (not .Values.syscalls.customList) -}}
{{- fail "syscalls.captureLevel custom needs syscalls.customList." -}}
{{- end -}}
{{- if and .Values.syscalls.customList (ne .Values.syscalls.captureLevel "custom") -}}
{{- fail "syscalls.customList counts only with syscalls.captureLevel custom." -}}
{{- end -}}
{{- if and .Values.compute.contention.enabled (not .Values.compute.enabled) -}}
{{- fail "compute.contention.enabled needs compute.enabled." -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateSeccomp" -}}
{{- $stale := .Values.broker.seccomp.nodeStatusStaleSeconds | int64 -}}
{{- $interval := .Values.seccomp.distributeIntervalSeconds | int64 -}}
{{- /* One pass may be late and one report lost, and the node is still there. */ -}}
{{- if and (ne $stale 0) (lt $stale (mul 3 $interval)) -}}
{{- fail (printf "broker.seccomp.nodeStatusStaleSeconds %d is less than three times seccomp.distributeIntervalSeconds %d: nodes that report in time would count as silent. Make it at least %d, or 0 for no window." $stale $interval (mul 3 $interval)) -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateSupplychain" -}}
{{- $supplychain := .Values.supplychain -}}
{{- $auth := .Values.broker.auth -}}
{{- $wanted := ternary "supplychain.enabled" "supplychain.signatureDiscovery.enabled" $supplychain.enabled -}}
{{- if or $supplychain.enabled $supplychain.signatureDiscovery.enabled -}}
{{- if ne $auth.mode "scoped" -}}
{{- fail (printf "%s needs broker.auth.mode scoped: what the component posts is taken with the token supplychain alone." $wanted) -}}
{{- end -}}
{{- /* Empty where templates are rendered apart from the cluster, and for a secret that is made later; then the pods wait for the key. */ -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace $auth.existingSecret -}}
{{- if and $secret (not (dig "data" "supplychain" "" $secret)) -}}
{{- fail (printf "%s needs the key supplychain in the secret %s, the token that the component posts with." $wanted $auth.existingSecret) -}}
{{- end -}}
{{- end -}}
{{- if and $supplychain.signatureDiscovery.enabled (not $supplychain.enabled) -}}
{{- fail "supplychain.signatureDiscovery.enabled needs supplychain.enabled: it is the component that looks, not the broker." -}}
{{- end -}}
{{- if and $supplychain.enabled (not (and $supplychain.image.repository $supplychain.image.tag)) -}}
{{- fail "supplychain.enabled needs supplychain.image.repository and supplychain.image.tag: this chart comes without the image." -}}
{{- end -}}
{{- end -}}
