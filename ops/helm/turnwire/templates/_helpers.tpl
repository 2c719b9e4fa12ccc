{{/* The name of every object: the release's, with the chart's unless it is in there. */}}
{{- define "turnwire.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the pod. The alert rules need the first: it becomes the name of the job. */}}
{{- define "turnwire.selector" -}}
app.kubernetes.io/name: turnwire
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "turnwire.labels" -}}
{{ include "turnwire.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The settings file: what the chart decides, with `settings` on top. */}}
{{- define "turnwire.settings" -}}
{{- $listen := dict "address" "0.0.0.0:8421" -}}
{{- $server := dict -}}
{{- if .Values.publicUrl -}}
{{- $_ := set $server "public_url" .Values.publicUrl -}}
{{- end -}}
{{- if .Values.trustedProxies -}}
{{- $_ := set $server "trusted_proxies" (join "," .Values.trustedProxies) -}}
{{- end -}}
{{- $auth := dict "mode" .Values.auth.mode -}}
{{- if eq .Values.auth.mode "jwt" -}}
{{- $_ := set $auth "jwt_issuer" (required "auth.jwt.issuer is needed with auth.mode jwt" .Values.auth.jwt.issuer) -}}
{{- $_ := set $auth "jwt_audience" (required "auth.jwt.audience is needed with auth.mode jwt" .Values.auth.jwt.audience) -}}
{{- $_ := set $auth "jwt_jwks" (required "auth.jwt.jwks is needed with auth.mode jwt" .Values.auth.jwt.jwks) -}}
{{- else if .Values.auth.tokensSecret -}}
{{- $_ := set $auth "tokens_file" "/etc/turnwire/tokens/tokens.json" -}}
{{- end -}}
{{- $own := dict "listen" $listen "server" $server "auth" $auth "log" (dict "format" "json") -}}
{{- if or .Values.pack.files .Values.pack.existingConfigMap -}}
{{- $_ := set $own "pack" (dict "dir" "/etc/turnwire/pack") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.settings)) -}}
{{- end -}}

{{- define "turnwire.secret" -}}
{{- .Values.existingSecret | default (printf "%s-keys" (include "turnwire.name" .)) -}}
{{- end -}}

{{- define "turnwire.pack" -}}
{{- .Values.pack.existingConfigMap | default (printf "%s-pack" (include "turnwire.name" .)) -}}
{{- end -}}
