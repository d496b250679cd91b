{{/*
`on`, or nothing for a job that the values turn off, as the job itself would say. Usage: (list $ NAME)
*/}}
{{- define "telemetry-broker.jobIsOn" -}}
{{- $values := (index . 0).Values -}}
{{- $broker := $values.broker -}}
{{- $off := dict
  "late-resolve" (eq (int64 $broker.peerResolution.lateResolveWindowSeconds) 0)
  "stale-sweep" (eq (int64 $broker.peerResolution.staleAliveSeconds) 0)
  "audit-retention" (eq (int64 $broker.audit.retention.days) 0)
  "traffic-retention" (and (eq (int64 $broker.traffic.retention.days) 0) (eq (int64 $broker.traffic.retention.maxRowsPerPod) 0))
  "image-inventory-retention" (eq (int64 $broker.imageInventory.retention.days) 0)
  "runtime-retention" (eq (int64 $broker.runtimeInventory.retentionDays) 0)
  "compute-fold" (eq (int64 $values.compute.history.retentionDays) 0)
  "profile-retention" (eq (int64 $broker.profiles.versions.retentionDays) 0)
  "version-check" (not $values.telemetry.enabled)
-}}
{{- if not (get $off (index . 1)) }}on{{ end -}}
{{- end -}}

{{/*
The schedule of a job: that of the values, else its own, in which an `H` stands for a minute or an hour that is drawn from the names of
release and job, so that jobs and installations do not all come at once. Usage: (list $ JOB)
*/}}
{{- define "telemetry-broker.jobSchedule" -}}
{{- $root := index . 0 -}}
{{- $job := index . 1 -}}
{{- $drawn := adler32sum (printf "%s/%s/%s" $root.Release.Namespace $root.Release.Name $job.name) | int64 -}}
{{- $fields := list -}}
{{- range $place, $field := splitList " " $job.schedule -}}
{{- $fields = append $fields (replace "H" (ternary (mod $drawn 60) (mod $drawn 24) (eq $place 0) | toString) $field) -}}
{{- end -}}
{{- get $root.Values.jobs.schedules $job.name | default (join " " $fields) -}}
{{- end -}}

{{/* Seconds between two passes of a job inside the broker. Usage: (list $ NAME) */}}
{{- define "telemetry-broker.jobInterval" -}}
{{- $values := (index . 0).Values -}}
{{- $broker := $values.broker -}}
{{- $seconds := dict
  "late-resolve" $broker.peerResolution.lateResolveIntervalSeconds
  "stale-sweep" $broker.peerResolution.lateResolveIntervalSeconds
  "audit-retention" $broker.audit.retention.intervalSeconds
  "dead-pod-retention" $broker.audit.retention.intervalSeconds
  "traffic-retention" $broker.traffic.retention.intervalSeconds
  "flow-edges" 10
  "image-inventory-retention" $broker.imageInventory.retention.intervalSeconds
  "supply-chain-refresh" $broker.supplychain.retention.intervalSeconds
  "attestation-retention" 3600
  "seccomp-denial-retention" $broker.seccomp.denials.retention.intervalSeconds
  "runtime-retention" $broker.runtimeInventory.retentionIntervalSeconds
  "compute-retention" 600
  "compute-fold" 600
  "profile-snapshots" $broker.profiles.snapshots.intervalSeconds
  "profile-retention" $broker.profiles.versions.retentionIntervalSeconds
  "version-check" $values.telemetry.intervalSeconds
-}}
{{- get $seconds (index . 1) | int64 -}}
{{- end -}}
