{{/* The name of everything the chart makes: the release's, which is unique in its namespace. */}}
{{- define "hpc-operator.fullname" -}}
{{- default .Release.Name .Values.fullnameOverride | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{/* Cluster-scoped names carry the namespace too: two namespaces may hold releases of one name. */}}
{{- define "hpc-operator.clusterWideName" -}}
{{- printf "%s-%s" .Release.Namespace (include "hpc-operator.fullname" .) -}}
{{- end -}}

{{- define "hpc-operator.selectorLabels" -}}
app.kubernetes.io/name: hpc-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hpc-operator.labels" -}}
{{ include "hpc-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "hpc-operator.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* What the operator may do to the objects it serves: read both kinds, set finalizers (a patch of
     metadata; it never writes a spec), write their status, tell events, and keep results in
     ConfigMaps that belong to a run (hence benchmarkruns/finalizers). */}}
{{- define "hpc-operator.rules" -}}
- apiGroups: [hpcops.dev]
  resources: [hpcclusters, benchmarkruns]
  verbs: [get, list, watch, patch]
- apiGroups: [hpcops.dev]
  resources: [hpcclusters/status, benchmarkruns/status]
  verbs: [patch, update]
- apiGroups: [hpcops.dev]
  resources: [benchmarkruns/finalizers]
  verbs: [update]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, get, list, delete]
{{- end -}}
