{{/* Environment of every program of the broker: server, jobs, migration. */}}
{{- define "telemetry-broker.programEnv" -}}
- name: NODE_ENV
  value: production
- name: MALLOC_ARENA_MAX
  value: "2"
- name: LOG_LEVEL
  value: {{ .Values.broker.logLevel }}
{{ include "telemetry-broker.databaseEnv" . }}
{{- end -}}

{{/* Address of the database. The password is separate, unless the whole address is in a secret. */}}
{{- define "telemetry-broker.databaseEnv" -}}
{{- if .Values.postgres.enabled -}}
- name: PGHOST
  value: {{ include "telemetry-broker.fullname" . }}-postgres
- name: PGUSER
  value: broker
- name: PGDATABASE
  value: broker
- name: DATABASE_PASSWORD_FILE
  value: /etc/broker/database/password
{{- else }}
{{- if .Values.database.host -}}
- name: PGHOST
  value: {{ .Values.database.host | quote }}
- name: PGPORT
  value: {{ .Values.database.port | int64 | quote }}
- name: PGUSER
  value: {{ .Values.database.user | quote }}
- name: PGDATABASE
  value: {{ .Values.database.name | quote }}
{{- if .Values.database.existingSecret }}
- name: DATABASE_PASSWORD_FILE
  value: /etc/broker/database/password
{{- end }}
{{- else -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.existingSecret | quote }}
      key: {{ .Values.database.urlKey | quote }}
{{- end }}
- name: PGSSLMODE
  value: {{ .Values.database.sslMode }}
{{- if .Values.database.caSecret }}
- name: PGSSLROOTCERT
  value: /etc/broker/database-ca/ca.crt
{{- end }}
{{- if .Values.database.clientCertSecret }}
- name: PGSSLCERT
  value: /etc/broker/database-client/tls.crt
- name: PGSSLKEY
  value: /etc/broker/database-client/tls.key
{{- end }}
{{- end }}
- name: DB_POOL_MAX_SIZE
  value: {{ .Values.database.poolMaxSize | int64 | quote }}
- name: DB_STATEMENT_TIMEOUT_MS
  value: {{ .Values.database.statementTimeoutMs | int64 | quote }}
- name: DB_PREPARE
  value: {{ .Values.database.prepare | quote }}
# A database that starts together with the broker needs time.
- name: DB_MIGRATION_MAX_RETRIES
  value: {{ max (ternary 60 1 .Values.postgres.enabled) (int64 .Values.database.migrationMaxRetries) | quote }}
{{- end -}}

{{/* The files that this environment names; empty if there are none. */}}
{{- define "telemetry-broker.databaseVolumes" -}}
{{- if .Values.postgres.enabled -}}
- name: database
  secret:
    secretName: {{ include "telemetry-broker.postgresSecretName" . }}
    defaultMode: 0440
    items:
      - key: password
        path: password
{{- else }}
{{- if and .Values.database.host .Values.database.existingSecret -}}
- name: database
  secret:
    secretName: {{ .Values.database.existingSecret | quote }}
    defaultMode: 0440
    items:
      - key: {{ .Values.database.passwordKey | quote }}
        path: password
{{- end }}
{{- if .Values.database.caSecret }}
- name: database-ca
  secret:
    secretName: {{ .Values.database.caSecret | quote }}
    defaultMode: 0440
    items:
      - key: ca.crt
        path: ca.crt
{{- end }}
{{- if .Values.database.clientCertSecret }}
- name: database-client
  secret:
    secretName: {{ .Values.database.clientCertSecret | quote }}
    defaultMode: 0440
    items:
      - key: tls.crt
        path: tls.crt
      - key: tls.key
        path: tls.key
{{- end }}
{{- end }}
{{- end -}}

{{- define "telemetry-broker.databaseVolumeMounts" -}}
{{- include "telemetry-broker.volumeMounts" (include "telemetry-broker.databaseVolumes" .) }}
{{- end -}}

{{/* Settings of the server and the jobs. */}}
{{- define "telemetry-broker.settingsEnv" -}}
- name: MIGRATE_ON_START
  value: {{ .Values.postgres.enabled | quote }}
- name: JOBS
  value: {{ .Values.jobs.mode }}
- name: BROKER_READ_MEMORY_BUDGET_MB
  value: {{ .Values.broker.readMemoryBudgetMb | int64 | quote }}
- name: BROKER_READ_ACQUIRE_WAIT_MS
  value: {{ .Values.broker.readAcquireWaitMs | int64 | quote }}
- name: WIRE_NAMES
  value: {{ .Values.broker.wireNames }}
- name: METRICS_WORKLOAD_LABELS
  value: {{ .Values.broker.metricsWorkloadLabels | quote }}
- name: ANNOTATION_PREFIX
  value: {{ .Values.broker.annotationPrefix | quote }}
- name: PEER_LATE_RESOLVE_WINDOW_SECS
  value: {{ .Values.broker.peerResolution.lateResolveWindowSeconds | int64 | quote }}
- name: PEER_LATE_RESOLVE_INTERVAL_SECS
  value: {{ .Values.broker.peerResolution.lateResolveIntervalSeconds | int64 | quote }}
- name: PEER_STALE_ALIVE_SECS
  value: {{ .Values.broker.peerResolution.staleAliveSeconds | int64 | quote }}
{{- if .Values.evaluator.enabled }}
- name: EVALUATOR_URL
  value: {{ .Values.evaluator.url | quote }}
{{- end }}
- name: AUDIT_INFLIGHT_PERMITS
  value: {{ .Values.broker.audit.inflightPermits | int64 | quote }}
- name: AUDIT_QUEUE_CAPACITY
  value: {{ .Values.broker.audit.queueCapacity | int64 | quote }}
- name: AUDIT_EVAL_TIMEOUT_MS
  value: {{ .Values.broker.audit.evalTimeoutMs | int64 | quote }}
- name: AUDIT_VERDICTS_RETENTION_DAYS
  value: {{ .Values.broker.audit.retention.days | int64 | quote }}
- name: AUDIT_VERDICTS_RETENTION_INTERVAL_SECS
  value: {{ .Values.broker.audit.retention.intervalSeconds | int64 | quote }}
- name: AUDIT_VERDICTS_RETENTION_BATCH_SIZE
  value: {{ .Values.broker.audit.retention.batchSize | int64 | quote }}
- name: DEAD_POD_RETENTION_DAYS
  value: {{ .Values.broker.deadPods.retentionDays | int64 | quote }}
- name: POD_TRAFFIC_RETENTION_DAYS
  value: {{ .Values.broker.traffic.retention.days | int64 | quote }}
- name: POD_TRAFFIC_RETENTION_INTERVAL_SECS
  value: {{ .Values.broker.traffic.retention.intervalSeconds | int64 | quote }}
- name: POD_TRAFFIC_RETENTION_BATCH_SIZE
  value: {{ .Values.broker.traffic.retention.batchSize | int64 | quote }}
- name: FLOW_EDGE_RETENTION_DAYS
  value: {{ .Values.broker.traffic.retention.edgeDays | int64 | quote }}
- name: POD_TRAFFIC_MAX_ROWS_PER_POD
  value: {{ .Values.broker.traffic.retention.maxRowsPerPod | int64 | quote }}
- name: IMAGE_INVENTORY_RUNNING_WINDOW_SECS
  value: {{ .Values.broker.imageInventory.runningWindowSeconds | int64 | quote }}
- name: IMAGE_INVENTORY_RETENTION_DAYS
  value: {{ .Values.broker.imageInventory.retention.days | int64 | quote }}
- name: IMAGE_INVENTORY_RETENTION_INTERVAL_SECS
  value: {{ .Values.broker.imageInventory.retention.intervalSeconds | int64 | quote }}
- name: IMAGE_INVENTORY_RETENTION_BATCH_SIZE
  value: {{ .Values.broker.imageInventory.retention.batchSize | int64 | quote }}
- name: SUPPLYCHAIN_MAX_DECOMPRESSED_BYTES
  value: {{ .Values.broker.supplychain.maxDecompressedBytes | int64 | quote }}
- name: SUPPLYCHAIN_RETENTION_INTERVAL_SECS
  value: {{ .Values.broker.supplychain.retention.intervalSeconds | int64 | quote }}
- name: SUPPLYCHAIN_RETENTION_DAYS
  value: {{ .Values.broker.supplychain.retention.days | int64 | quote }}
- name: SUPPLYCHAIN_UNLINKED_GRACE_HOURS
  value: {{ .Values.broker.supplychain.retention.unlinkedGraceHours | int64 | quote }}
- name: SUPPLYCHAIN_SBOM_PAGE_TTL_SECS
  value: {{ .Values.broker.supplychain.retention.sbomPageTtlSeconds | int64 | quote }}
- name: SUPPLYCHAIN_RETENTION_BATCH_SIZE
  value: {{ .Values.broker.supplychain.retention.batchSize | int64 | quote }}
- name: SUPPLYCHAIN_IN_USE_MIN_WINDOW_HOURS
  value: {{ .Values.broker.supplychain.inUseMinWindowHours | int64 | quote }}
- name: SUPPLYCHAIN_TIER_EPSS
  value: {{ .Values.broker.supplychain.tier.epss | quote }}
- name: SUPPLYCHAIN_TIER_UNKNOWN_EXPOSURE_AS_EXPOSED
  value: {{ .Values.broker.supplychain.tier.unknownExposureAsExposed | quote }}
- name: IMAGE_ATTESTATION_RETENTION_DAYS
  value: {{ .Values.broker.supplychain.retention.attestationDays | int64 | quote }}
- name: SIGNATURE_DISCOVERY_ENABLED
  value: {{ and .Values.supplychain.enabled .Values.supplychain.signatureDiscovery.enabled | quote }}
- name: SECCOMP_PROFILE_DIR
  value: {{ .Values.broker.seccomp.profileDir | quote }}
- name: SECCOMP_PROFILES_CACHE_TTL_SECS
  value: {{ .Values.broker.seccomp.profilesCacheTtlSeconds | int64 | quote }}
- name: SECCOMP_NODE_STATUS_STALE_SECS
  value: {{ .Values.broker.seccomp.nodeStatusStaleSeconds | int64 | quote }}
- name: SECCOMP_DENIALS_RETENTION_DAYS
  value: {{ .Values.broker.seccomp.denials.retention.days | int64 | quote }}
- name: SECCOMP_DENIALS_RETENTION_INTERVAL_SECS
  value: {{ .Values.broker.seccomp.denials.retention.intervalSeconds | int64 | quote }}
- name: SECCOMP_DENIALS_RETENTION_BATCH_SIZE
  value: {{ .Values.broker.seccomp.denials.retention.batchSize | int64 | quote }}
- name: SECCOMP_DENIAL_METRICS_INTERVAL_SECS
  value: {{ .Values.broker.seccomp.denials.metricsIntervalSeconds | int64 | quote }}
- name: RUNTIME_INVENTORY_RETENTION_DAYS
  value: {{ .Values.broker.runtimeInventory.retentionDays | int64 | quote }}
- name: RUNTIME_INVENTORY_RETENTION_INTERVAL_SECS
  value: {{ .Values.broker.runtimeInventory.retentionIntervalSeconds | int64 | quote }}
- name: CAPABILITY_EVIDENCE_WINDOW_HOURS
  value: {{ .Values.broker.runtimeInventory.capabilityEvidenceWindowHours | int64 | quote }}
- name: PROFILE_SNAPSHOT_INTERVAL_SECS
  value: {{ .Values.broker.profiles.snapshots.intervalSeconds | int64 | quote }}
- name: PROFILE_SNAPSHOT_BATCH
  value: {{ .Values.broker.profiles.snapshots.batch | int64 | quote }}
- name: PROFILE_SNAPSHOT_TICK_BUDGET_SECS
  value: {{ .Values.broker.profiles.snapshots.tickBudgetSeconds | int64 | quote }}
- name: PROFILE_VERSIONS_MAX_PER_WORKLOAD
  value: {{ .Values.broker.profiles.versions.maxPerWorkload | int64 | quote }}
- name: PROFILE_VERSIONS_RETENTION_DAYS
  value: {{ .Values.broker.profiles.versions.retentionDays | int64 | quote }}
- name: PROFILE_VERSIONS_RETENTION_INTERVAL_SECS
  value: {{ .Values.broker.profiles.versions.retentionIntervalSeconds | int64 | quote }}
{{- /* Also with compute.enabled off: stored samples still expire. */}}
- name: COMPUTE_HISTORY_RETENTION_DAYS
  value: {{ .Values.compute.history.retentionDays | int64 | quote }}
- name: COMPUTE_HISTORY_MINUTE_HOURS
  value: {{ .Values.compute.history.minuteResolutionHours | int64 | quote }}
- name: COMPUTE_RETENTION_INTERVAL_SECS
  value: "600"
- name: COMPUTE_THRESHOLD_STALL_SOME
  value: {{ .Values.compute.thresholds.stallSome | int64 | quote }}
- name: COMPUTE_THRESHOLD_RUNQ_P99_MS
  value: {{ .Values.compute.thresholds.runqP99Ms | int64 | quote }}
- name: COMPUTE_THRESHOLD_THROTTLED_RATIO
  value: {{ .Values.compute.thresholds.throttledRatio | quote }}
- name: COMPUTE_THRESHOLD_THROTTLED_RATIO_MAX
  value: {{ .Values.compute.thresholds.throttledRatioMax | quote }}
- name: COMPUTE_THRESHOLD_BLAME_SHARE
  value: {{ .Values.compute.thresholds.blameShare | quote }}
- name: COMPUTE_THRESHOLD_MEM_STALL_SOME
  value: {{ .Values.compute.thresholds.memStallSome | int64 | quote }}
- name: COMPUTE_THRESHOLD_REFAULT_PER_MIN
  value: {{ .Values.compute.thresholds.refaultPerMin | int64 | quote }}
- name: COMPUTE_THRESHOLD_MIN_RUNQ_EVENTS
  value: {{ .Values.compute.thresholds.minRunqEvents | int64 | quote }}
- name: TELEMETRY_ENABLED
  value: {{ .Values.telemetry.enabled | quote }}
- name: TELEMETRY_ENDPOINT
  value: {{ .Values.telemetry.endpoint | quote }}
- name: TELEMETRY_INTERVAL_SECS
  value: {{ .Values.telemetry.intervalSeconds | int64 | quote }}
- name: CHART_VERSION
  value: {{ .Chart.Version | quote }}
- name: KUBE_VERSION
  value: {{ .Capabilities.KubeVersion.Version | quote }}
{{- with include "telemetry-broker.features" . }}
- name: FEATURES
  value: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* The features that this chart turned on, of ai, audit, netpol and sso. */}}
{{- define "telemetry-broker.features" -}}
{{- $on := list -}}
{{- if .Values.evaluator.enabled }}{{ $on = append $on "audit" }}{{ end -}}
{{- if .Values.networkPolicy.enabled }}{{ $on = append $on "netpol" }}{{ end -}}
{{- join "," $on -}}
{{- end -}}

{{/*
The tokens that the broker knows. A secret without `read` or `ingest` keeps its pods from starting: a scope left open by a slip would show
nobody. So does one without `supplychain` where the component runs: it drops for good what a broker refuses that does not know its token.
*/}}
{{- define "telemetry-broker.tokensEnv" -}}
{{- $folder := "/etc/broker/tokens" -}}
{{- if eq .Values.broker.auth.mode "scoped" -}}
- name: BROKER_TOKEN_READ_FILE
  value: {{ $folder }}/read,{{ $folder }}/read-next
- name: BROKER_TOKEN_INGEST_FILE
  value: {{ $folder }}/ingest,{{ $folder }}/ingest-next
{{- if .Values.supplychain.enabled }}
- name: BROKER_TOKEN_SUPPLYCHAIN_FILE
  value: {{ $folder }}/supplychain,{{ $folder }}/supplychain-next
{{- else }}
# The key may be missing without the component, but a mounted file may not.
- name: BROKER_TOKEN_SUPPLYCHAIN
  valueFrom:
    secretKeyRef:
      name: {{ .Values.broker.auth.existingSecret | quote }}
      key: supplychain
      optional: true
{{- end }}
# Nobody needs it but those who record exports of profiles.
- name: BROKER_TOKEN_ADMIN
  valueFrom:
    secretKeyRef:
      name: {{ .Values.broker.auth.existingSecret | quote }}
      key: admin
      optional: true
{{- else if eq .Values.broker.auth.mode "shared" -}}
- name: BROKER_AUTH_TOKEN_FILE
  value: {{ $folder }}/token,{{ $folder }}/token-next
{{- end -}}
{{- end -}}

{{/*
Tokens as files, which are read again when the secret changes: keys that must be there, and each one's successor, which may. Empty without
authentication. Usage: (list $ KEYS)
*/}}
{{- define "telemetry-broker.tokenVolume" -}}
{{- $auth := (index . 0).Values.broker.auth -}}
{{- if ne $auth.mode "none" -}}
- name: tokens
  projected:
    defaultMode: 0440
    sources:
      {{- range index . 1 }}
      - secret:
          name: {{ $auth.existingSecret | quote }}
          items:
            - key: {{ . }}
              path: {{ . }}
      - secret:
          name: {{ $auth.existingSecret | quote }}
          optional: true
          items:
            - key: {{ . }}-next
              path: {{ . }}-next
      {{- end }}
{{- end -}}
{{- end -}}

{{/* The keys of the secret that the broker mounts. */}}
{{- define "telemetry-broker.tokenKeys" -}}
{{- if eq .Values.broker.auth.mode "shared" -}}
- token
{{- else -}}
- read
- ingest
{{- if .Values.supplychain.enabled }}
- supplychain
{{- end }}
{{- end -}}
{{- end -}}

{{/* Volumes of the broker. */}}
{{- define "telemetry-broker.brokerVolumes" -}}
{{- include "telemetry-broker.databaseVolumes" . }}
{{ include "telemetry-broker.tokenVolume" (list . (include "telemetry-broker.tokenKeys" . | fromYamlArray)) }}
{{- end -}}

{{/* Volumes of the edge proxy. */}}
{{- define "telemetry-broker.frontendVolumes" -}}
{{ include "telemetry-broker.tokenVolume" (list . (list (ternary "token" "read" (eq .Values.broker.auth.mode "shared")))) }}
{{- end -}}

{{/* Mounts of volumes. Usage: (include VOLUMES) */}}
{{- define "telemetry-broker.volumeMounts" -}}
{{- range . | fromYamlArray }}
- name: {{ .name }}
  mountPath: /etc/broker/{{ .name }}
  readOnly: true
{{- end }}
{{- end -}}

{{/* Environment of the server without `broker.env`. */}}
{{- define "telemetry-broker.brokerEnv" -}}
{{ include "telemetry-broker.programEnv" . }}
{{ include "telemetry-broker.settingsEnv" . }}
- name: LISTEN_ADDR
  value: "{{ .Values.bindAddress }}:9090"
- name: ADMIN_ADDR
  value: "{{ .Values.bindAddress }}:9091"
- name: CONSOLE
  value: {{ .Values.broker.console | quote }}
{{- with (.Values.broker.resources.limits | default dict).memory }}
- name: BROKER_MEMORY_LIMIT_MB
  value: {{ include "telemetry-broker.mebibytes" (list . "broker.resources.limits.memory") | quote }}
{{- end }}
{{- with include "telemetry-broker.tokensEnv" . }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "telemetry-broker.frontendEnv" -}}
- name: NODE_ENV
  value: production
- name: MALLOC_ARENA_MAX
  value: "2"
- name: LOG_LEVEL
  value: {{ .Values.frontend.logLevel }}
- name: ADMIN_ADDR
  value: "{{ .Values.bindAddress }}:8081"
- name: BROKER_URL
  value: {{ include "telemetry-broker.brokerUrl" . }}
- name: BASE_PATH
  value: {{ .Values.frontend.basePath | quote }}
- name: CONSOLE
  value: {{ .Values.frontend.console | quote }}
{{- $name := printf "%s-frontend" (include "telemetry-broker.fullname" .) }}
{{- $inNamespace := printf "%s.%s" $name .Release.Namespace }}
{{- $routed := list }}
{{- range include "telemetry-broker.frontendHosts" . | fromJsonArray }}
{{- if not (hasPrefix "*" .) }}{{ $routed = append $routed . }}{{ end }}
{{- end }}
- name: ALLOWED_HOSTS
  value: {{ concat (list $name $inNamespace (printf "%s.svc" $inNamespace) (printf "%s.svc.cluster.local" $inNamespace)) .Values.frontend.allowedHosts $routed | uniq | join "," | quote }}
{{- if eq .Values.broker.auth.mode "scoped" }}
- name: BROKER_TOKEN_READ_FILE
  value: /etc/broker/tokens/read
{{- else if eq .Values.broker.auth.mode "shared" }}
- name: BROKER_AUTH_TOKEN_FILE
  value: /etc/broker/tokens/token
- name: ALLOW_SHARED_TOKEN
  value: {{ .Values.frontend.brokerAuth.allowSharedToken | quote }}
{{- end }}
{{- end -}}

{{/* The environment of the agent, as its interface names it. */}}
{{- define "telemetry-broker.controllerEnv" -}}
- name: CURRENT_NODE
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
- name: API_ENDPOINT
  value: {{ include "telemetry-broker.brokerUrl" . }}
{{- if ne .Values.broker.auth.mode "none" }}
{{- $key := ternary "ingest" "token" (eq .Values.broker.auth.mode "scoped") }}
- name: BROKER_AUTH_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .Values.broker.auth.existingSecret | quote }}
      key: {{ $key }}
      optional: false
{{- end }}
- name: EXCLUDED_NAMESPACES
  value: {{ join "," .Values.controller.excludedNamespaces | quote }}
- name: SYSCALL_CAPTURE_LEVEL
  value: {{ .Values.syscalls.captureLevel }}
{{- if eq .Values.syscalls.captureLevel "custom" }}
- name: SYSCALL_CUSTOM_LIST
  value: {{ join "," .Values.syscalls.customList | quote }}
{{- end }}
- name: SECCOMP_DISTRIBUTE
  value: {{ .Values.seccomp.distribute | quote }}
{{- if .Values.seccomp.distribute }}
- name: SECCOMP_ROOT
  value: {{ .Values.seccomp.root | quote }}
- name: SECCOMP_DISTRIBUTE_INTERVAL_SECS
  value: {{ .Values.seccomp.distributeIntervalSeconds | int64 | quote }}
{{- end }}
- name: SECCOMP_DENIAL_CAPTURE
  value: {{ .Values.seccomp.denials.enabled | quote }}
{{- if .Values.seccomp.denials.enabled }}
- name: SECCOMP_DENIAL_INTERVAL_SECONDS
  value: {{ .Values.seccomp.denials.intervalSeconds | int64 | quote }}
{{- end }}
- name: RUNTIME_INVENTORY
  value: {{ .Values.controller.runtimeInventory.mode | quote }}
- name: RUNTIME_INVENTORY_CAPABILITIES
  value: {{ ternary "on" "off" .Values.controller.runtimeInventory.capabilities | quote }}
- name: STARTUP_CAPTURE_KNOWN_POD_TTL_SECONDS
  value: {{ .Values.controller.startupCapture.knownPodTtlSeconds | int64 | quote }}
- name: STARTUP_CAPTURE_PENDING_TTL_SECONDS
  value: {{ .Values.controller.startupCapture.pendingTtlSeconds | int64 | quote }}
- name: COMPUTE_ENABLED
  value: {{ .Values.compute.enabled | quote }}
{{- if .Values.compute.enabled }}
- name: COMPUTE_SAMPLE_INTERVAL_SECS
  value: {{ .Values.compute.sampleInterval | int64 | quote }}
- name: COMPUTE_CONTENTION_ENABLED
  value: {{ .Values.compute.contention.enabled | quote }}
- name: COMPUTE_MIN_RUNQ_LATENCY_US
  value: {{ .Values.compute.contention.minRunqLatencyUs | int64 | quote }}
- name: COMPUTE_CGROUP_ROOT
  value: /sys/fs/cgroup
- name: COMPUTE_HOST_PROC
  value: /proc
{{- end }}
{{- end -}}

{{/* The environment of the supply-chain component, as its interface names it. */}}
{{- define "telemetry-broker.supplychainEnv" -}}
- name: LISTEN_ADDR
  value: ":8083"
- name: BROKER_URL
  value: {{ include "telemetry-broker.brokerUrl" . }}
- name: BROKER_INGEST_ENABLED
  value: "true"
- name: BROKER_AUTH_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .Values.broker.auth.existingSecret | quote }}
      key: supplychain
      optional: false
- name: TRIVY_OPERATOR_ENABLED
  value: {{ .Values.supplychain.sources.operatorScanner.enabled | quote }}
- name: REGISTRY_SBOM_ENABLED
  value: {{ .Values.supplychain.sources.registry.enabled | quote }}
- name: REGISTRY_LOOKUP_ENABLED
  value: {{ .Values.supplychain.registryLookup.enabled | quote }}
- name: ATTESTATION_ENABLED
  value: {{ .Values.supplychain.signatureDiscovery.enabled | quote }}
{{- end -}}

{{/* Variables that values add to an environment. A repeated name is refused, since either could win. Usage: (list EXTRA ENV NAME) */}}
{{- define "telemetry-broker.extraEnv" -}}
{{- $names := list -}}
{{- range index . 1 | fromYamlArray }}{{ $names = append $names .name }}{{ end -}}
{{- range index . 0 -}}
{{- if has .name $names }}{{ fail (printf "%s: %s is set by the chart, or twice; use the value of the chart that sets it." (index $ 2) .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- with index . 0 }}{{ toYaml . }}{{ end -}}
{{- end -}}
