{{- define "stream-dedup.name" -}}
{{- default .Chart.Name .Values.nameOverride }}
{{- end }}

{{/* Names derived from it have up to 11 more characters, and the names of Services at most 63. */}}
{{- define "stream-dedup.fullname" -}}
{{- $name := printf "%s-%s" .Release.Name (include "stream-dedup.name" .) }}
{{- if .Values.fullnameOverride }}
{{- $name = .Values.fullnameOverride }}
{{- else if contains (include "stream-dedup.name" .) .Release.Name }}
{{- $name = .Release.Name }}
{{- end }}
{{- $name = $name | trunc 48 | trimSuffix "-" }}
{{- /* It is the job too, by which alerts know the service (deploy/prometheus/rules/alerts.yaml), and a Service's name has no dots. */}}
{{- if not (regexMatch "^([a-z][-a-z0-9]*)?stream-?dedup([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- fail (printf "%q cannot be the name: alerts want \"stream-dedup\" in it, Kubernetes a letter first and no dots; set fullnameOverride (its first 48 characters count)" $name) }}
{{- end }}
{{- $name }}
{{- end }}

{{- define "stream-dedup.selector" -}}
app.kubernetes.io/name: {{ include "stream-dedup.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "stream-dedup.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "stream-dedup.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "stream-dedup.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "stream-dedup.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- .Values.serviceAccount.name | default (include "stream-dedup.fullname" .) }}
{{- else }}
{{- .Values.serviceAccount.name | default "default" }}
{{- end }}
{{- end }}
