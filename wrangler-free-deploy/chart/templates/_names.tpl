{{/* First part of every name. A CronJob's name has at most 52 characters, of which the longest job takes 26 with its hyphen. */}}
{{- define "telemetry-broker.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 26 | trimSuffix "-" -}}
{{- end -}}

{{/* Labels that select the pods of a component. Usage: (list $ "broker") */}}
{{- define "telemetry-broker.selectorLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of an object. Usage: (list $ "broker") */}}
{{- define "telemetry-broker.labels" -}}
{{- $root := index . 0 -}}
{{ include "telemetry-broker.selectorLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels and annotations of a pod: those that select it go before those of the values. Usage: (list $ "broker") */}}
{{- define "telemetry-broker.podMetadata" -}}
{{- $root := index . 0 -}}
labels:
  {{- toYaml (merge (include "telemetry-broker.selectorLabels" . | fromYaml) $root.Values.pods.labels) | nindent 2 }}
{{- with $root.Values.pods.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "telemetry-broker.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "telemetry-broker.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "telemetry-broker.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/*
Connections that brokers and jobs may open: those of a rolling update, which has one broker more, and four for each job that a scheduler runs.
As JSON: `sum` says how, `count` how many.
*/}}
{{- define "telemetry-broker.connections" -}}
{{- $broker := .Values.broker -}}
{{- $replicas := ternary $broker.autoscaling.maxReplicas $broker.replicas $broker.autoscaling.enabled | int64 -}}
{{- $pool := .Values.database.poolMaxSize | int64 -}}
{{- $sum := printf "(%d + 1) x %d" $replicas $pool -}}
{{- $jobs := 0 -}}
{{- if eq .Values.jobs.mode "external" -}}
{{- range .Files.Get "files/jobs.json" | fromJsonArray -}}
{{- if include "telemetry-broker.jobIsOn" (list $ .name) }}{{ $jobs = add $jobs 1 }}{{ end -}}
{{- end -}}
{{- $sum = printf "%s + %d x 4" $sum $jobs -}}
{{- end -}}
{{- dict "sum" $sum "count" (add (mul (add $replicas 1) $pool) (mul $jobs 4)) | toJson -}}
{{- end -}}

{{/* Those that the trial database has for them: PostgreSQL keeps three for its owner. */}}
{{- define "telemetry-broker.trialConnections" -}}
{{- sub (int64 .Values.postgres.maxConnections) 3 -}}
{{- end -}}

{{/* Names by which the edge proxy is reached from outside, as JSON. */}}
{{- define "telemetry-broker.frontendHosts" -}}
{{- $ingress := .Values.frontend.ingress -}}
{{- $route := .Values.frontend.httpRoute -}}
{{- concat (ternary $ingress.hosts list $ingress.enabled) (ternary $route.hostnames list $route.enabled) | uniq | toJson -}}
{{- end -}}

{{- define "telemetry-broker.brokerUrl" -}}
http://{{ include "telemetry-broker.fullname" . }}-broker.{{ .Release.Namespace }}.svc:9090
{{- end -}}
