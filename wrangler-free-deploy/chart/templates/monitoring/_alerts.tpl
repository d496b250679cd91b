{{/*
The alerts. What a job is called is in `exported_job`: `job` is the label of what was scraped.
*/}}
{{- define "telemetry-broker.alerts" -}}
{{- $pods := printf "namespace=%q,job=%q" .Release.Namespace (printf "%s-broker-metrics" (include "telemetry-broker.fullname" .)) -}}
- alert: BrokerDown
  expr: sum(up{ {{- $pods -}} }) == 0 or absent(up{ {{- $pods -}} })
  for: 5m
  labels:
    severity: critical
  annotations:
    summary: No broker can be scraped.
    runbook: >-
      Look at the pods with the component `broker`, their events and last log lines. Agents keep what they could not post for a while
      and then lose the oldest; reads fail.
- alert: BrokerDatabaseUnreachable
  expr: max(broker_db_reachable{ {{- $pods -}} }) == 0
  for: 5m
  labels:
    severity: critical
  annotations:
    summary: No broker reaches its database.
    runbook: >-
      Is PostgreSQL up, does its address resolve, does it let the role in, is its disk full? The log names the fault. The broker answers 503
      and finds the database again by itself: do not restart it.
- alert: BrokerSchemaNotReady
  expr: min(broker_db_schema_ready{ {{- $pods -}} } unless broker_db_reachable{ {{- $pods -}} } == 0) == 0
  for: 10m
  labels:
    severity: critical
  annotations:
    summary: The schema of the database is not that of a broker.
    runbook: >-
      A migration did not run or failed: look at the Job with the component `migration`, or at the start of the broker, and upgrade again. A
      database restored from before the last upgrade needs it too.
- alert: BrokerErrors
  expr: >-
    sum(rate(broker_http_request_duration_seconds_count{ {{- $pods }},status=~"5.."}[10m]))
    / sum(rate(broker_http_request_duration_seconds_count{ {{- $pods -}} }[10m])) > 0.05
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: More than one request in twenty fails at the broker.
    runbook: >-
      The label `status` tells which kind: 503 is load or the database, and its alerts say more; 500 is a fault of the broker, whose log has
      the request with its cause.
- alert: BrokerReadsShed
  expr: sum(rate(broker_read_shed_total{ {{- $pods -}} }[10m])) > 0
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: Reads are refused because lists take all the memory for them.
    runbook: >-
      Somebody asks for many long lists at once. Find them by route and status 503 in the log; raise broker.readMemoryBudgetMb together with
      the memory limit, or add pods.
- alert: BrokerBodiesShed
  expr: sum(rate(broker_bodies_shed_total{ {{- $pods -}} }[10m])) > 0
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: Posts are refused because too many bodies come at once.
    runbook: Agents post again, so nothing is lost yet. Add pods, or find who posts bodies that are larger than those of an agent.
- alert: BrokerStatementsRefused
  expr: sum by (gate) (delta(broker_db_gate_refused{ {{- $pods -}} }[10m])) > 0
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: '{{ `Statements of the gate {{ $labels.gate }} find no connection in time.` }}'
    runbook: >-
      The database is slow, or has too few connections for the load: look at what it is waiting for, then at database.poolMaxSize and at
      what the server allows.
- alert: BrokerServerConnections
  expr: max(broker_db_server_connections{ {{- $pods -}} }) / max(broker_db_server_connections_max{ {{- $pods -}} }) > 0.85
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: The database server has few connections left.
    runbook: >-
      Whose are they? `select datname, usename, count(*) from pg_stat_activity group by 1, 2` tells. Those of brokers are at most (brokers + 1) x
      database.poolMaxSize: lower it, raise max_connections of the server, or put a pooler between. When none is left, posts and reads get 503.
- alert: BrokerTableGrows
  {{- $bytes := printf "max by (table) (broker_db_table_bytes{%s}" $pods }}
  expr: {{ $bytes }}) > 2 * {{ $bytes }} offset 7d) and {{ $bytes }}) > 10737418240
  for: 60m
  labels:
    severity: warning
  annotations:
    summary: '{{ `The table {{ $labels.table }} is twice as large as a week ago.` }}'
    runbook: >-
      Does the job that deletes from it run (BrokerJobOverdue)? Are its rows dead (BrokerDeadRows)? Else more comes in than is kept: Sizing says
      which value bounds which table. How much room has the disk of the database? Full, it takes no posts.
- alert: BrokerDeadRows
  {{- $dead := printf "max by (table) (broker_db_table_dead_rows{%s})" $pods }}
  expr: {{ $dead }} > 1000000 and {{ $dead }} > 0.5 * max by (table) (broker_db_table_rows{ {{- $pods -}} })
  for: 60m
  labels:
    severity: warning
  annotations:
    summary: '{{ `Many rows of the table {{ $labels.table }} are dead and not vacuumed.` }}'
    runbook: >-
      The table grows and its reads get slow. Is autovacuum on, and does it reach the table? A transaction that stays open keeps rows from it: look for the oldest
      xact_start in pg_stat_activity, and for slots in pg_replication_slots that nobody reads. `vacuum` by hand helps once that is gone.
- alert: BrokerJobOverdue
  expr: |-
    {{- range $at, $job := include "telemetry-broker.watchedJobs" . | fromJsonArray }}
    {{- $passes := printf "broker_job_last_success_timestamp_seconds{%s,exported_job=%q}" $pods $job.name }}
    {{ if $at }}or {{ end }}time() - max by (exported_job) ({{ $passes }}) > {{ $job.overdueSeconds | int64 }}
    or (absent({{ $passes }}) and on () max(broker_uptime_seconds{ {{- $pods -}} }) > {{ $job.overdueSeconds | int64 }})
    {{- end }}
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: '{{ `The job {{ $labels.exported_job }} has not ended well for three times its interval.` }}'
    runbook: >-
      Its log lines say what failed: in the brokers, or with jobs.mode external in the pods with the component `jobs`. Is the CronJob
      suspended? Without retention the database grows, and verdicts on images are shown that nobody has checked for long; without late-resolve flows stay without a peer; without supply-chain-refresh pods that
      started since have no findings, and the summary of vulnerabilities is old.
- alert: BrokerSbomsRefused
  {{- $prefix := ternary "svc" "kguardian" (eq .Values.broker.wireNames "spec") }}
  expr: sum(rate({{ $prefix }}_supplychain_staged_sets_refused_total{ {{- $pods -}} }[30m])) > 0
  for: 30m
  labels:
    severity: warning
  annotations:
    summary: SBOMs that come in pages are refused, because too many are half-sent.
    runbook: >-
      No more than 64 of them, or 256 MiB, are kept until they are whole. Does the sender post all pages? Incomplete SBOMs are deleted after broker.supplychain.retention.sbomPageTtlSeconds.
{{- if .Values.supplychain.enabled }}
- alert: BrokerSupplyChainPostsRefused
  {{- $posts := "method=\"POST\",route=~\"/images/:digest/vulnerabilities|/images/:digest/sbom\"" }}
  expr: sum by (route, status) (rate(broker_http_request_duration_seconds_count{ {{- $pods }},{{ $posts }},status=~"400|401|403|413|422"}[30m])) > 0
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: '{{ `Posts to {{ $labels.route }} are refused with {{ $labels.status }}.` }}'
    runbook: >-
      The supply-chain component does not post again what was refused. 401 and 403: is its token the key `supplychain` of broker.auth.existingSecret, and were the
      brokers restarted since it changed? 413: the report inflates to more than broker.supplychain.maxDecompressedBytes. 400 and 422: the answer says
      which field; are component and broker of the same release? Once that is mended, restart the component: it then posts everything.
- alert: BrokerImagesNotScanned
  expr: max(broker_supplychain_running_images_unscanned{ {{- $pods -}} }) > 0
  for: 1440m
  labels:
    severity: warning
  annotations:
    summary: '{{ `{{ $value }} running images have had neither a report nor an SBOM for a day.` }}'
    runbook: >-
      GET /coverage names them (`missing` has `no_report` and `no_sbom`). Does the scanner reach their registries, may it read the namespaces, does its log name
      them? Nothing is known of their packages, so no search finds them; they may have vulnerabilities.
{{- end }}
{{- if .Values.supplychain.signatureDiscovery.enabled }}
- alert: BrokerSignatureResultsRefused
  {{- $results := "method=\"POST\",route=\"/images/:digest/attestation\"" }}
  expr: sum by (status) (rate(broker_http_request_duration_seconds_count{ {{- $pods }},{{ $results }},status=~"400|401|403|413|422"}[30m])) > 0
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: '{{ `Results of checking signatures are refused with {{ $labels.status }}.` }}'
    runbook: >-
      These images keep the result that they had, or have none, and image trust policies judge by that. 401 and 403: is the token of the component
      the key `supplychain` of broker.auth.existingSecret? 413 and 422: the answer says what is too large or not allowed; are component and broker of the same release?
- alert: BrokerNoSignatureResult
  {{- $stored := printf "broker_http_request_duration_seconds_count{%s,%s,status=~\"20[01]\"}" $pods $results }}
  expr: (sum(increase({{ $stored }}[1d])) == 0 or absent({{ $stored }})) and on () max(broker_uptime_seconds{ {{- $pods -}} }) > 86400
  for: 60m
  labels:
    severity: warning
  annotations:
    summary: No result of checking signatures came for a day.
    runbook: >-
      Does the pod with the component `supplychain` run, does it reach the registries, what does its log say? Results that are not posted again are deleted after
      broker.supplychain.retention.attestationDays, and their images then count as never checked: unknown, not unsigned.
{{- end }}
- alert: BrokerEntriesRejected
  expr: sum by (route) (rate(broker_rejected_entries_total{ {{- $pods -}} }[30m])) > 0
  for: 60m
  labels:
    severity: warning
  annotations:
    summary: '{{ `Parts of what is posted to {{ $labels.route }} are left out.` }}'
    runbook: >-
      The log says once a minute for a route what it left out and why: entries that lack a field, or what is above a limit, such as 1024 syscalls of a workload. The rest is stored. Are agents and broker of the same release? A profile without such a syscall blocks it where it enforces. Agents count dropped
      entries of the runtime inventory as lost, and the containers of that post are not covered.
- alert: BrokerNoAgent
  {{- $posts := printf "broker_http_request_duration_seconds_count{%s,method=\"POST\",route=\"/pod/spec\",status=\"200\"}" $pods }}
  expr: sum(rate({{ $posts }}[15m])) == 0 or absent({{ $posts }})
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: No agent posts pods.
    runbook: >-
      Each agent posts each pod of its node once a minute. Do the agents run, do they reach the Service, is their token one for ingest?
      After broker.peerResolution.staleAliveSeconds all pods count as dead.
- alert: BrokerNodesSilent
  expr: max(broker_nodes{ {{- $pods }},state="silent"}) > {{ .Values.prometheusRule.maxSilentNodes | int64 }}
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: '{{ `{{ $value }} nodes have fallen silent.` }}'
    runbook: >-
      GET /node/status names them: `stale` is true, and the last post or heartbeat is within a day. Is the node there, does its agent run, does it reach the Service, is its
      token known (BrokerTokensRefused)? Nobody watches the pods of such a node, and they count as dead. A node that was removed counts until its
      last post is a day old; where that is usual, raise prometheusRule.maxSilentNodes.
- alert: BrokerTokensRefused
  expr: sum by (route, status) (rate(broker_http_request_duration_seconds_count{ {{- $pods }},status=~"401|403"}[10m])) > 0.05
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: '{{ `Requests to {{ $labels.route }} are refused with {{ $labels.status }}.` }}'
    runbook: >-
      401 is a token that the broker does not know, 403 one without the scope that the route needs. Was the secret of broker.auth.existingSecret changed, and do brokers and clients have the same one? Agents lose what they cannot post for long. If no client of yours uses that route, somebody is guessing tokens.
{{- if and .Values.controller.enabled .Values.seccomp.distribute }}
- alert: BrokerNoSeccompReport
  {{- $seconds := max 900 (mul 3 (int64 .Values.seccomp.distributeIntervalSeconds)) }}
  {{- $reports := printf "broker_http_request_duration_seconds_count{%s,method=\"POST\",route=\"/seccomp/node-status\",status=\"200\"}" $pods }}
  expr: (sum(rate({{ $reports }}[{{ $seconds }}s])) == 0 or absent({{ $reports }})) and on () max(broker_uptime_seconds{ {{- $pods -}} }) > {{ $seconds }}
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: No node says which seccomp profiles it has.
    runbook: >-
      Each agent tells it every seccomp.distributeIntervalSeconds. Do the agents run, may they write to seccomp.root, is their token one for ingest? After
      broker.seccomp.nodeStatusStaleSeconds no node counts as having a profile, and new pods that refer to one may not start.
{{- end }}
{{- if and .Values.controller.enabled .Values.seccomp.denials.enabled }}
- alert: BrokerNoDenialReport
  {{- $denials := printf "broker_http_request_duration_seconds_count{%s,method=\"POST\",route=\"/seccomp/denials\",status=\"200\"}" $pods }}
  {{- $window := printf "%ds" (max 900 (mul 3 (int64 .Values.seccomp.denials.intervalSeconds))) }}
  expr: sum(rate({{ $denials }}[{{ $window }}])) == 0 or absent({{ $denials }})
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: No agent says what the kernel denied.
    runbook: >-
      Each agent tells it every seccomp.denials.intervalSeconds, also that it was nothing. Do the agents run, can their kernels attach the probe, is their
      token one for ingest? Meanwhile the number of denials is unknown, which is not none: put no profile into force by it.
{{- end }}
{{- if and .Values.controller.enabled (ne .Values.controller.runtimeInventory.mode "off") }}
- alert: BrokerNoRuntimeHeartbeat
  {{- $heartbeats := printf "broker_http_request_duration_seconds_count{%s,method=\"POST\",route=\"/runtime/coverage\",status=\"200\"}" $pods }}
  expr: sum(rate({{ $heartbeats }}[15m])) == 0 or absent({{ $heartbeats }})
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: No agent says that it watches which files run.
    runbook: >-
      Each agent tells of each container that it watches every five minutes. Do the agents run, in the mode of controller.runtimeInventory.mode, can
      their kernels attach the probe, is their token one for ingest? Meanwhile no container is covered: that nothing was seen says nothing.
{{- end }}
{{- if and .Values.controller.enabled .Values.compute.enabled }}
- alert: BrokerNoComputeSample
  {{- $samples := printf "broker_http_request_duration_seconds_count{%s,method=\"POST\",route=\"/pod/compute/batch\",status=\"200\"}" $pods }}
  expr: sum(rate({{ $samples }}[15m])) == 0 or absent({{ $samples }})
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: No agent posts what containers take of CPU and memory.
    runbook: >-
      Each agent posts a sample every compute.sampleInterval seconds. Do the agents run, do their nodes have cgroups of version 2, is their token one
      for ingest? Meanwhile nodes do not count as reporting, and an empty list of findings says nothing.
{{- end }}
{{- if gt (int64 .Values.compute.history.retentionDays) 0 }}
- alert: BrokerComputeFoldBehind
  expr: >-
    sum(rate(broker_job_passes_total{ {{- $pods }},exported_job="compute-fold",outcome="capped"}[1h])) > 0
    unless sum(rate(broker_job_passes_total{ {{- $pods }},exported_job="compute-fold",outcome="done"}[1h])) > 0
  for: 60m
  labels:
    severity: warning
  annotations:
    summary: Minutes of compute history come faster than they are packed.
    runbook: >-
      Each pass of compute-fold has ended with minutes left, so minutes take ten times the disk that they need. After hours without jobs that passes by itself. Else look
      at what the database is short of: a million minutes take two minutes of a processor. With compute.history.retentionDays 0 none are kept.
{{- end }}
- alert: BrokerAgentClockSkew
  expr: max(broker_agent_clock_skew_seconds{ {{- $pods -}} }) > 300
  for: 30m
  labels:
    severity: warning
  annotations:
    summary: The clock of a node is off by more than five minutes.
    runbook: The log of the broker names the node once an hour. Flows are attributed by their own time, so those of this node go wrong.
{{- with (.Values.broker.resources.limits | default dict).memory }}
- alert: BrokerMemoryHigh
  {{- $mebibytes := include "telemetry-broker.mebibytes" (list . "broker.resources.limits.memory") | int64 }}
  expr: max by (pod) (process_resident_memory_bytes{ {{- $pods -}} }) > {{ div (mul $mebibytes 1048576 9) 10 }}
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: '{{ `{{ $labels.pod }} is near its memory limit.` }}'
    runbook: >-
      Lower broker.readMemoryBudgetMb or raise broker.resources.limits.memory, of which the heap gets 60 %. One that grows without load is a
      fault: keep the metrics of the time.
{{- end }}
- alert: BrokerEventLoopSlow
  expr: max by (pod) (nodejs_eventloop_lag_p99_seconds{ {{- $pods -}} }) > 0.5
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: '{{ `{{ $labels.pod }} answers late: its processor is busy.` }}'
    runbook: Add pods, or give them more processor. Is a limit on the processor set? It stops the whole process in each period.
{{- if .Values.frontend.enabled }}
{{- $proxies := printf "namespace=%q,job=%q" .Release.Namespace (printf "%s-frontend-metrics" (include "telemetry-broker.fullname" .)) }}
- alert: FrontendDown
  expr: sum(up{ {{- $proxies -}} }) == 0 or absent(up{ {{- $proxies -}} })
  for: 5m
  labels:
    severity: warning
  annotations:
    summary: No edge proxy can be scraped.
    runbook: Look at the pods with the component `frontend`, their events and last log lines. Agents do not go this way; the UI has no data.
- alert: FrontendUpstreamErrors
  expr: sum(rate(edge_upstream_errors_total{ {{- $proxies -}} }[10m])) / sum(rate(edge_http_requests_total{ {{- $proxies -}} }[10m])) > 0.05
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: More than one request in twenty of the UI gets no whole answer from the broker.
    runbook: >-
      The label `kind` of edge_upstream_errors_total tells which: `unreachable`, are there brokers that are ready, and does a network policy let the
      proxy reach them? `timeout`, the database is slow; `full`, more is asked at once than a proxy forwards, so add pods with frontend.replicas.
{{- end }}
- alert: BrokerFollowersBehind
  expr: max(broker_follow_lag_seconds{ {{- $pods -}} }) > 60
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: Clients that follow flows are more than a minute behind.
    runbook: A long transaction in the same server that writes holds them up (pg_stat_activity, backend_xid not null), or the database is overloaded. No flow is lost.
- alert: BrokerEdgesBehind
  expr: min(broker_flow_edges_lag_seconds{ {{- $pods -}} }) > 300
  for: 10m
  labels:
    severity: warning
  annotations:
    summary: Edges of flows are more than five minutes behind.
    runbook: >-
      Does the job flow-edges run, see broker_job_last_success_timestamp_seconds? A long transaction in the same server that writes holds it up (pg_stat_activity,
      backend_xid not null). No flow is lost.
{{- if .Values.evaluator.enabled }}
- alert: BrokerAuditFlowsShed
  expr: sum(rate(broker_audit_dropped_total{ {{- $pods -}} }[10m])) > 0
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: New flows are not evaluated, because the queue for the evaluator is full.
    runbook: The evaluator is slower than flows come. Give it more pods, or raise broker.audit.inflightPermits.
- alert: BrokerEvaluatorUnreachable
  expr: >-
    sum(rate(broker_audit_flows_total{ {{- $pods }},outcome!="evaluated"}[10m]))
    / sum(rate(broker_audit_flows_total{ {{- $pods -}} }[10m])) > 0.5
  for: 15m
  labels:
    severity: warning
  annotations:
    summary: Most flows find no evaluator.
    runbook: Does evaluator.url lead to it, and does it answer within broker.audit.evalTimeoutMs? These flows get no verdict later.
{{- end }}
{{- end -}}

{{/*
Jobs that must run, with the seconds after which they are late. The version service may be silent for days, and of a schedule that
the values give nobody knows how far its times are apart.
*/}}
{{- define "telemetry-broker.watchedJobs" -}}
{{- $watched := list -}}
{{- range .Files.Get "files/jobs.json" | fromJsonArray -}}
{{- $interval := .everySeconds -}}
{{- if eq $.Values.jobs.mode "in-process" }}{{ $interval = include "telemetry-broker.jobInterval" (list $ .name) }}{{ end -}}
{{- if and (include "telemetry-broker.jobIsOn" (list $ .name)) (ne .name "version-check") (not (hasKey $.Values.jobs.schedules .name)) -}}
{{- $watched = append $watched (dict "name" .name "overdueSeconds" (max 900 (mul 3 (int64 $interval)))) -}}
{{- end -}}
{{- end -}}
{{- toJson $watched -}}
{{- end -}}
