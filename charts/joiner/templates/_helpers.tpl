{{- define "joiner.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "joiner.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "joiner.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "joiner.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "joiner.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "joiner.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "joiner.selectorLabels" -}}
app.kubernetes.io/name: {{ include "joiner.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Labels and annotations of every object; takes a dict with `root`, and `annotations` of the object itself. */}}
{{- define "joiner.metadata" -}}
labels:
  helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
  {{- include "joiner.selectorLabels" .root | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  {{- with merge (dict) (default (dict) .labels) (default (dict) .root.Values.additionalLabels) }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default (dict) .annotations) (default (dict) .root.Values.additionalAnnotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Refuses what only Karpenter has, all of it at once. What is empty, Karpenter's chart does not hand on either. */}}
{{- define "joiner.refuse" -}}
{{- $refused := list }}
{{- range $name, $setting := .Files.Get "karpenter-settings.yaml" | fromYaml }}
{{- $value := get (default (dict) $.Values.settings) $name }}
{{- if and $value (ne (toString $value) (toString $setting.default)) }}
{{- $refused = append $refused (printf "settings.%s is Karpenter's and for AWS, remove it: %s" $name $setting.instead) }}
{{- end }}
{{- end }}
{{- if hasSuffix "karpenter/controller" (default "" .Values.controller.image.repository) }}
{{- $refused = append $refused "controller.image is Karpenter's: set repository, tag and digest to those of an image of joiner, or to ''" }}
{{- end }}
{{- if $refused }}{{ fail (join "\n" (prepend $refused "these values cannot be carried over:")) }}{{ end }}
{{- end }}

{{- define "joiner.containerName" -}}
{{- default "controller" .Values.controller.containerName }}
{{- end }}

{{- define "joiner.image" -}}
{{- with .Values.controller.image }}
{{- $repository := default "joiner" .repository }}
{{- if .digest -}}
{{ $repository }}{{ with .tag }}:{{ . }}{{ end }}@{{ .digest }}
{{- else -}}
{{ $repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end }}
{{- end }}
{{- end }}

{{- /* `nodeRepair: true` and its like as `NodeRepair=true,...`. */}}
{{- define "joiner.featureGates" -}}
{{- $gates := list }}
{{- range $name, $on := (.Values.settings).featureGates }}
{{- $gates = append $gates (printf "%s%s=%t" (substr 0 1 $name | upper) (substr 1 (len $name) $name) $on) }}
{{- end }}
{{- join "," $gates }}
{{- end }}

{{- /* Environment variables by their names. One that is null or empty is left out: joiner's own default is the chart's. */}}
{{- define "joiner.variables" -}}
{{- $variables := list }}
{{- range $name, $value := . }}
{{- if not (has $value (list nil "")) }}
{{- $variables = append $variables (dict "name" $name "value" (kindIs "string" $value | ternary $value (toJson $value))) }}
{{- end }}
{{- end }}
{{- with $variables }}{{ toYaml . }}{{ end }}
{{- end }}

{{- /* Gives a term (`term`) that has no selector that of joiner's pods; one that somebody wrote stays as it is. */}}
{{- define "joiner.addSelector" -}}
{{- if not (hasKey .term "labelSelector") }}
{{- $_ := set .term "labelSelector" (dict "matchLabels" (include "joiner.selectorLabels" .root | fromYaml)) }}
{{- end }}
{{- end }}

{{- define "joiner.topologySpreadConstraints" -}}
{{- $constraints := deepCopy .Values.topologySpreadConstraints }}
{{- range $constraints }}
{{- include "joiner.addSelector" (dict "root" $ "term" .) }}
{{- end }}
{{- toYaml $constraints }}
{{- end }}

{{- define "joiner.affinity" -}}
{{- $affinity := deepCopy .Values.affinity }}
{{- range $kind := list "podAffinity" "podAntiAffinity" }}
{{- with get $affinity $kind }}
{{- range .requiredDuringSchedulingIgnoredDuringExecution }}
{{- include "joiner.addSelector" (dict "root" $ "term" .) }}
{{- end }}
{{- range .preferredDuringSchedulingIgnoredDuringExecution }}
{{- include "joiner.addSelector" (dict "root" $ "term" .podAffinityTerm) }}
{{- end }}
{{- end }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}
