{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: hms-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The settings of the pods: those of the values over those of the chart. */ -}}
{{- define "settings" -}}
{{- $own := dict "drain_idle_seconds" 3 }}
{{- if .Values.tls.secret }}
{{- $_ := set $own "tls_certificate" "/etc/hms-gateway/tls/tls.crt" }}
{{- $_ := set $own "tls_key" "/etc/hms-gateway/tls/tls.key" }}
{{- end }}
{{- if .Values.logins.secret }}
{{- $_ := set $own "users_file" "/etc/hms-gateway/logins/users" }}
{{- $_ := set $own "secrets_key_file" "/etc/hms-gateway/logins/secrets.key" }}
{{- else if .Values.admin.secret }}
{{- $_ := set $own "admin_password_file" "/etc/hms-gateway/admin/password" }}
{{- end }}
{{- if .Values.settings.thrift_port }}
{{- $_ := set $own "thrift_host" "0.0.0.0" }}
{{- end }}
{{- mergeOverwrite $own .Values.settings | toJson }}
{{- end }}

{{- /* As variables: lists and tables are JSON. */ -}}
{{- define "variables" -}}
{{- range $name, $value := include "settings" . | fromJson }}
HMS_GATEWAY_{{ upper $name }}: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- end }}

{{- /* Seconds from the end of the endpoint to the end of the process: endpoints, calls in flight, idle connections. */ -}}
{{- define "grace" -}}
{{- $settings := include "settings" . | fromJson }}
{{- add 5 10 (dig "limits" "drain_seconds_max" 30 $settings | ceil) (ceil $settings.drain_idle_seconds) }}
{{- end }}

{{- define "probe" -}}
httpGet:
  path: {{ .path }}
  port: https
  scheme: {{ eq (toString (get .settings "tls")) "false" | ternary "HTTP" "HTTPS" }}
{{- end }}

{{- define "confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "account" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "databaseUrl" -}}
- name: HMS_GATEWAY_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ .Values.database.secret }}
      key: url
{{- end }}
