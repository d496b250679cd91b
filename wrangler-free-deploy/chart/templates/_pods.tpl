{{/* Common to the pods of all components that do not use the Kubernetes API. */}}
{{- define "telemetry-broker.podSpec" -}}
automountServiceAccountToken: false
{{ include "telemetry-broker.unprivilegedPod" . }}
{{- end -}}

{{/* Common to the pods of all components but the controller. */}}
{{- define "telemetry-broker.unprivilegedPod" -}}
enableServiceLinks: false
securityContext:
  {{- include "telemetry-broker.withoutNulls" .Values.podSecurityContext | nindent 2 }}
{{- with include "telemetry-broker.placement" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Scheduling and image pull secrets of pods. */}}
{{- define "telemetry-broker.placement" }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.pods.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "telemetry-broker.containerSecurity" -}}
securityContext:
  {{- include "telemetry-broker.withoutNulls" .Values.securityContext | nindent 2 }}
{{- end -}}

{{/* A map without null fields: a parent chart passes nulls on. */}}
{{- define "telemetry-broker.withoutNulls" -}}
{{- $kept := dict -}}
{{- range $field, $value := . -}}
{{- if not (kindIs "invalid" $value) }}{{ $kept = set $kept $field $value }}{{ end -}}
{{- end -}}
{{- toYaml $kept -}}
{{- end -}}

{{/*
MiB of a quantity of Kubernetes, rounded down: `1Gi`, `512M`, `1.5Gi`, bytes with or without an exponent. Usage: (list QUANTITY NAME)
*/}}
{{- define "telemetry-broker.mebibytes" -}}
{{- $quantity := index . 0 | toString -}}
{{- $form := "^([0-9]+(?:\\.[0-9]+)?(?:[eE][+]?[0-9]+)?)(Ki|Mi|Gi|Ti|k|M|G|T)?$" -}}
{{- if not (regexMatch $form $quantity) -}}
{{- fail (printf "%s: %q is not an amount of memory; use, for example, 1Gi." (index . 1) $quantity) -}}
{{- end -}}
{{- $number := regexReplaceAll $form $quantity "${1}" | float64 -}}
{{- $unit := regexReplaceAll $form $quantity "${2}" -}}
{{- $bytes := dict "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 -}}
{{- divf (mulf $number (get $bytes $unit)) 1048576.0 | floor | int64 -}}
{{- end -}}

{{/* Thousandths of a core of a quantity of Kubernetes, `500m`, `1`, `0.5`. Usage: (list QUANTITY NAME) */}}
{{- define "telemetry-broker.millicores" -}}
{{- $quantity := index . 0 | toString -}}
{{- $form := "^([0-9]+(?:\\.[0-9]+)?)(m?)$" -}}
{{- if not (regexMatch $form $quantity) -}}
{{- fail (printf "%s: %q is not an amount of CPU; use, for example, 500m." (index . 1) $quantity) -}}
{{- end -}}
{{- $number := regexReplaceAll $form $quantity "${1}" | float64 -}}
{{- mulf $number (ternary 1.0 1000.0 (hasSuffix "m" $quantity)) | floor | int64 -}}
{{- end -}}

{{/*
Command line of Node, without the program. 60 % of the memory limit are for the heap, the rest for what is not on it: bodies, answers, the
program itself. Usage: (list RESOURCES NAME)
*/}}
{{- define "telemetry-broker.node" -}}
- node
- --v8-pool-size=1
{{- with ((index . 0).limits | default dict).memory }}
- --max-old-space-size={{ div (mul (include "telemetry-broker.mebibytes" (list . (index $ 1)) | int64) 60) 100 }}
{{- end }}
{{- end -}}
