{{- /* What the schema can't say: whether the values fit each other. */ -}}
{{- define "parley.check" -}}
{{- range list "bus" "store" -}}
{{- if not (regexMatch (printf "(?m)^[ \\t]*(\\[[ \\t]*%s[ \\t]*\\]|%s(\\.url)?[ \\t]*=)" . .) $.Values.config) -}}
{{- fail (printf "config has no [%s]: the processes of a fleet share one Redis ([bus] url) and one PostgreSQL ([store] url)" .) -}}
{{- end -}}
{{- end -}}
{{- if not (contains (include "parley.workspacesAt" .) .Values.config) -}}
{{- fail (printf "config puts the conversations' files where only one pod sees them: write root = %q in [workspace]" (include "parley.workspacesAt" .)) -}}
{{- end -}}
{{- if and .Values.secrets .Values.existingSecret -}}
{{- fail (printf "both secrets and existingSecret (%s) are set, and there is one Secret: leave one of them out" .Values.existingSecret) -}}
{{- end -}}
{{- if .Values.secrets -}}
{{- range splitList " " (include "parley.wantedSecrets" .) -}}
{{- if and . (not (hasKey $.Values.secrets .)) -}}
{{- fail (printf "config names the secret %s, and secrets has none: add --set-file secrets.%s=FILE" . .) -}}
{{- end -}}
{{- end -}}
{{- range $name, $text := .Values.secrets -}}
{{- if and (ge (len (trim $text)) 8) (contains (trim $text) $.Values.config) -}}
{{- fail (printf "config contains the text of the secret %s, where anybody who sees the ConfigMap reads it: write ${file:%s/%s}" $name (include "parley.secretsAt" $) $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not (contains .Values.ingress.host .Values.config)) -}}
{{- fail (printf "config doesn't have the ingress's host %s, so Parley would refuse what comes by that name: add public_url or hosts in [http]" .Values.ingress.host) -}}
{{- end -}}
{{- with .Values.worker.autoscaling -}}
{{- if gt (int .min) (int .max) -}}
{{- fail (printf "worker.autoscaling.min (%d) is above max (%d)" (int .min) (int .max)) -}}
{{- end -}}
{{- end -}}
{{- end }}
