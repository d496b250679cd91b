{{/* Refuses combinations of values that cannot work, with a message for each. */}}
{{- define "telemetry-broker.validate" -}}
{{- include "telemetry-broker.validateImage" . -}}
{{- include "telemetry-broker.validateDatabase" . -}}
{{- include "telemetry-broker.validateAuth" . -}}
{{- include "telemetry-broker.validateBroker" . -}}
{{- include "telemetry-broker.validateAutoscaling" . -}}
{{- include "telemetry-broker.validateConnections" . -}}
{{- include "telemetry-broker.validateBackup" . -}}
{{- include "telemetry-broker.validateFrontend" . -}}
{{- include "telemetry-broker.validateController" . -}}
{{- include "telemetry-broker.validateSeccomp" . -}}
{{- include "telemetry-broker.validateSupplychain" . -}}
{{- end -}}

{{- define "telemetry-broker.validateImage" -}}
{{- /* Without a registry nodes use their default one, where anyone may own the name. */ -}}
{{- if not (regexMatch "^(localhost|[^/]*[.:][^/]*)/." .Values.image.repository) -}}
{{- fail (printf "image.repository %q names no registry: push the image to one that the nodes can pull from, and give its full name, such as registry.example.com/cluster-telemetry-broker. An image that was loaded onto the nodes is named localhost/cluster-telemetry-broker, or docker.io/library/cluster-telemetry-broker if Docker built it." .Values.image.repository) -}}
{{- end -}}
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
{{- fail "database.caSecret is given and database.sslMode does not verify the certificate of the server: set it to verify-full or verify-ca." -}}
{{- end -}}
{{- if and (eq $database.sslMode "verify-ca") (not $database.caSecret) -}}
{{- fail "database.sslMode verify-ca needs database.caSecret: otherwise a certificate of any public authority would be accepted." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateAuth" -}}
{{- $auth := .Values.broker.auth -}}
{{- if and (ne $auth.mode "none") (not $auth.existingSecret) -}}
{{- fail (printf "broker.auth.mode %s needs broker.auth.existingSecret, the secret with the tokens." $auth.mode) -}}
{{- end -}}
{{- if and (eq $auth.mode "none") $auth.existingSecret -}}
{{- fail "broker.auth.existingSecret is given and broker.auth.mode is none, which requires no token: set the mode to scoped." -}}
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
{{- if and .Values.jobs.schedules (ne .Values.jobs.mode "external") -}}
{{- fail "jobs.schedules has an effect only with jobs.mode external: in the broker, jobs run at their intervals." -}}
{{- end -}}
{{- $known := list -}}
{{- range .Files.Get "files/jobs.json" | fromJsonArray }}{{ $known = append $known .name }}{{ end -}}
{{- range $name, $schedule := .Values.jobs.schedules -}}
{{- if not (has $name $known) -}}
{{- fail (printf "jobs.schedules: there is no job %s; the jobs are %s." $name (join ", " $known)) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.prometheusRule.enabled (not .Values.serviceMonitor.enabled) -}}
{{- fail "prometheusRule.enabled needs serviceMonitor.enabled: the alerts use the metrics that it scrapes." -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateAutoscaling" -}}
{{- $scaling := .Values.broker.autoscaling -}}
{{- if $scaling.enabled -}}
{{- if gt (int64 $scaling.minReplicas) (int64 $scaling.maxReplicas) -}}
{{- fail "broker.autoscaling.minReplicas must not be more than maxReplicas." -}}
{{- end -}}
{{- with (.Values.broker.resources.limits | default dict).cpu -}}
{{- $limit := include "telemetry-broker.millicores" (list . "broker.resources.limits.cpu") | int64 -}}
{{- if le $limit (include "telemetry-broker.millicores" (list $scaling.targetCPU "broker.autoscaling.targetCPU") | int64) -}}
{{- fail (printf "broker.resources.limits.cpu %s is not above broker.autoscaling.targetCPU %s, so the autoscaler would never add a broker: raise or remove the limit." (toString .) $scaling.targetCPU) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateConnections" -}}
{{- $connections := include "telemetry-broker.connections" . | fromJson -}}
{{- $taken := include "telemetry-broker.trialConnections" . | int64 -}}
{{- if and .Values.postgres.enabled (gt (int64 $connections.count) $taken) -}}
{{- fail (printf "Brokers and jobs may use %s = %d connections, and the trial database accepts %d: set postgres.maxConnections to at least %d, or lower database.poolMaxSize or the number of brokers." $connections.sum (int64 $connections.count) $taken (add $connections.count 3)) -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateBackup" -}}
{{- $database := .Values.database -}}
{{- if .Values.backup.enabled -}}
{{- if not .Values.backup.existingClaim -}}
{{- fail "backup.enabled needs backup.existingClaim, the name of a PersistentVolumeClaim in this namespace with room for the dumps. You create it, so that it outlives the release." -}}
{{- end -}}
{{- if and (not .Values.postgres.enabled) (eq $database.sslMode "verify-full") (not $database.caSecret) -}}
{{- fail "backup.enabled with database.sslMode verify-full needs database.caSecret: pg_dump has no list of trusted authorities." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateFrontend" -}}
{{- $ingress := .Values.frontend.ingress -}}
{{- $route := .Values.frontend.httpRoute -}}
{{- range $name, $way := dict "ingress" $ingress "httpRoute" $route -}}
{{- if and $way.enabled (not $.Values.frontend.enabled) -}}
{{- fail (printf "frontend.%s.enabled needs frontend.enabled: it routes to the edge proxy." $name) -}}
{{- end -}}
{{- end -}}
{{- if and $ingress.enabled (not $ingress.hosts) -}}
{{- fail "frontend.ingress.enabled needs frontend.ingress.hosts: without host names it would match all." -}}
{{- end -}}
{{- if and $route.enabled (not $route.parentRefs) -}}
{{- fail "frontend.httpRoute.enabled needs frontend.httpRoute.parentRefs, the gateways that it belongs to." -}}
{{- end -}}
{{- if and $route.enabled (not $route.hostnames) -}}
{{- fail "frontend.httpRoute.enabled needs frontend.httpRoute.hostnames: without host names it would match all." -}}
{{- end -}}
{{- if and .Values.frontend.enabled .Values.frontend.console (hasPrefix "/console/" (printf "%s/" .Values.frontend.basePath)) -}}
{{- fail "frontend.basePath is the path of the console: choose another one, or set frontend.console to false." -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateController" -}}
{{- if and .Values.controller.enabled (not (and .Values.controller.image.repository .Values.controller.image.tag)) -}}
{{- fail "controller.enabled needs controller.image.repository and controller.image.tag: this chart does not include the image." -}}
{{- end -}}
{{- if and .Values.controller.runtimeInventory.capabilities (eq .Values.controller.runtimeInventory.mode "off") -}}
{{- fail "controller.runtimeInventory.capabilities needs the mode exec or full." -}}
{{- end -}}
{{- if and (eq .Values.syscalls.captureLevel "custom") (not .Values.syscalls.customList) -}}
{{- fail "syscalls.captureLevel custom needs syscalls.customList." -}}
{{- end -}}
{{- if and .Values.syscalls.customList (ne .Values.syscalls.captureLevel "custom") -}}
{{- fail "syscalls.customList has an effect only with syscalls.captureLevel custom." -}}
{{- end -}}
{{- if and .Values.compute.contention.enabled (not .Values.compute.enabled) -}}
{{- fail "compute.contention.enabled needs compute.enabled." -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateSeccomp" -}}
{{- $stale := .Values.broker.seccomp.nodeStatusStaleSeconds | int64 -}}
{{- $interval := .Values.seccomp.distributeIntervalSeconds | int64 -}}
{{- /* Allows for one late pass and one lost report. */ -}}
{{- if and (ne $stale 0) (lt $stale (mul 3 $interval)) -}}
{{- fail (printf "broker.seccomp.nodeStatusStaleSeconds %d is less than three times seccomp.distributeIntervalSeconds %d: nodes that report in time would count as silent. Set it to at least %d, or to 0 for no limit." $stale $interval (mul 3 $interval)) -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.validateSupplychain" -}}
{{- $supplychain := .Values.supplychain -}}
{{- $auth := .Values.broker.auth -}}
{{- $wanted := ternary "supplychain.enabled" "supplychain.signatureDiscovery.enabled" $supplychain.enabled -}}
{{- if or $supplychain.enabled $supplychain.signatureDiscovery.enabled -}}
{{- if ne $auth.mode "scoped" -}}
{{- fail (printf "%s needs broker.auth.mode scoped: the broker accepts the posts of the component only with the token supplychain." $wanted) -}}
{{- end -}}
{{- /* The look-up is empty without a cluster, and for a secret that is created later; then the pods wait for the key. */ -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace $auth.existingSecret -}}
{{- if and $secret (not (dig "data" "supplychain" "" $secret)) -}}
{{- fail (printf "%s needs the key supplychain in the secret %s, the token of the component." $wanted $auth.existingSecret) -}}
{{- end -}}
{{- end -}}
{{- if and $supplychain.signatureDiscovery.enabled (not $supplychain.enabled) -}}
{{- fail "supplychain.signatureDiscovery.enabled needs supplychain.enabled: the component looks for signatures, not the broker." -}}
{{- end -}}
{{- if and $supplychain.enabled (not (and $supplychain.image.repository $supplychain.image.tag)) -}}
{{- fail "supplychain.enabled needs supplychain.image.repository and supplychain.image.tag: this chart does not include the image." -}}
{{- end -}}
{{- end -}}
