{{- define "parley.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- /* The release's name, with the chart's if it isn't in there; short enough for "-workspaces" after it. */ -}}
{{- define "parley.fullname" -}}
{{- $name := include "parley.name" . -}}
{{- $full := printf "%s-%s" .Release.Name $name -}}
{{- if contains $name .Release.Name }}{{ $full = .Release.Name }}{{ end -}}
{{- .Values.fullnameOverride | default $full | replace "." "-" | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- /* What the selectors of a role's pods match; it never changes. Called with (list . "role"). */ -}}
{{- define "parley.selector" -}}
{{- $ := index . 0 -}}
app.kubernetes.io/name: {{ include "parley.name" $ }}
app.kubernetes.io/instance: {{ $.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "parley.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ include "parley.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "parley.secretName" -}}
{{- .Values.existingSecret | default (include "parley.fullname" .) -}}
{{- end }}

{{- define "parley.claimName" -}}
{{- .Values.workspaces.existingClaim | default (printf "%s-workspaces" (include "parley.fullname" .)) -}}
{{- end }}

{{- define "parley.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (include "parley.fullname" .) -}}
{{- end }}

{{- define "parley.secretsAt" -}}/run/secrets/parley{{- end }}
{{- define "parley.workspacesAt" -}}/var/lib/parley-workspaces{{- end }}

{{- /* The names of the secrets that the settings want, with a space between two. */ -}}
{{- define "parley.wantedSecrets" -}}
{{- $names := list -}}
{{- range regexFindAll (printf "\\$\\{file:%s/[^}/]+\\}" (include "parley.secretsAt" .)) .Values.config -1 -}}
{{- $names = append $names (base . | trimSuffix "}") -}}
{{- end -}}
{{- $names | uniq | sortAlpha | join " " -}}
{{- end }}

{{- /* How many seconds [serve] drain is. */ -}}
{{- define "parley.drain" -}}
{{- $line := regexFind "(?m)^[ \\t]*(serve\\.)?drain[ \\t]*=[ \\t]*[\"'][^\"']*" .Values.config | default "drain = \"10s" -}}
{{- $drain := regexReplaceAll "^.*[\"']" $line "" -}}
{{- $hours := regexFind "[0-9.]+h" $drain | trimSuffix "h" | float64 -}}
{{- $minutes := regexFind "[0-9.]+m([^s]|$)" $drain | regexFind "[0-9.]+" | float64 -}}
{{- $seconds := regexFind "[0-9.]+s" $drain | trimSuffix "s" | float64 -}}
{{- addf (mulf $hours 3600) (mulf $minutes 60) $seconds | ceil | int -}}
{{- end }}

{{- /* GOMEMLIMIT, a third below a limit in Mi or Gi. */ -}}
{{- define "parley.goMemory" -}}
{{- $mebibytes := regexFind "^[0-9]+" . | int -}}
{{- if hasSuffix "Gi" . }}{{ $mebibytes = mul $mebibytes 1024 }}{{ end -}}
{{- div (mul $mebibytes 2) 3 }}MiB
{{- end }}
