{{- /* The Deployment of a role and its disruption budget. Called with (list . "role"). */ -}}
{{- define "parley.role" -}}
{{- $ := index . 0 -}}
{{- $role := index . 1 -}}
{{- $its := get $.Values $role -}}
{{- $name := printf "%s-%s" (include "parley.fullname" $) $role -}}
{{- $scaled := and (eq $role "worker") $.Values.worker.autoscaling.enabled -}}
{{- $bubblewrap := and (eq $role "worker") $.Values.worker.bubblewrap -}}
{{- include "parley.check" $ -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ $.Release.Namespace }}
  labels:
    {{- include "parley.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ $role }}
spec:
  {{- if not $scaled }}
  replicas: {{ $its.replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "parley.selector" . | nindent 6 }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      maxUnavailable: 0
      maxSurge: {{ $.Values.maxSurge }}
  template:
    metadata:
      labels:
        {{- include "parley.selector" . | nindent 8 }}
      annotations:
        # Pods are replaced when the settings or the secrets change.
        checksum/config: {{ $.Values.config | sha256sum }}
        {{- if $.Values.secrets }}
        checksum/secrets: {{ $.Values.secrets | toJson | sha256sum }}
        {{- end }}
        {{- with $its.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "parley.serviceAccountName" $ }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      # With a shared process namespace, an init process reaps what agents' commands leave behind.
      shareProcessNamespace: true
      {{- if $bubblewrap }}
      hostUsers: false
      {{- end }}
      {{- with $.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile:
          type: {{ ternary "Unconfined" "RuntimeDefault" $bubblewrap }}
        {{- if $bubblewrap }}
        appArmorProfile:
          type: Unconfined
        {{- end }}
      # [serve] drain, once for turns and once for sends, and some more{{ if eq $role "gateway" }}; and the wait before the signal{{ end }}.
      terminationGracePeriodSeconds: {{ add (mul 2 (include "parley.drain" $)) 10 (ternary 5 0 (eq $role "gateway")) }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          matchLabelKeys: [pod-template-hash]
          labelSelector:
            matchLabels:
              {{- include "parley.selector" . | nindent 14 }}
      {{- with $its.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $its.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $its.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - {{- include "parley.container" . | nindent 10 }}
      volumes:
        # A process needs its own files only as long as the pod lives.
        - name: home
          emptyDir: {}
        - name: tmp
          emptyDir: {}
        - name: config
          configMap:
            name: {{ include "parley.fullname" $ }}
        - name: secrets
          secret:
            secretName: {{ include "parley.secretName" $ }}
            defaultMode: 0440
        - name: workspaces
          persistentVolumeClaim:
            claimName: {{ include "parley.claimName" $ }}
        {{- with $.Values.volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $.Release.Namespace }}
  labels:
    {{- include "parley.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ $role }}
spec:
  maxUnavailable: 1
  # While Redis or PostgreSQL is away, no pod is ready: nodes can be drained nevertheless.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "parley.selector" . | nindent 6 }}
{{- end }}

{{- define "parley.container" -}}
{{- $ := index . 0 -}}
{{- $role := index . 1 -}}
{{- $its := get $.Values $role -}}
{{- $bubblewrap := and (eq $role "worker") $.Values.worker.bubblewrap -}}
name: parley
image: {{ printf "%s:%s" $.Values.image.repository ($.Values.image.tag | default $.Chart.AppVersion) }}
imagePullPolicy: {{ $.Values.image.pullPolicy }}
args: ["serve", "--role", {{ $role | quote }}, "--listen", {{ printf ":%d" (int $.Values.port) | quote }}]
env:
  - name: PARLEY_CONFIG
    value: /etc/parley/parley.toml
  # A folder in the volume, which the group of the volume can't write to.
  - name: PARLEY_HOME
    value: /var/lib/parley/home
  - name: GOMEMLIMIT
    value: {{ include "parley.goMemory" $its.resources.limits.memory }}
  {{- with $.Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - name: http
    containerPort: {{ $.Values.port }}
# The first start creates the tables, and the first start of a new release updates them.
startupProbe:
  httpGet:
    path: /healthz
    port: http
  periodSeconds: 2
  failureThreshold: 300
livenessProbe:
  httpGet:
    path: /healthz
    port: http
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 3
# Reports whether bus, store and channels answer. The program waits up to five seconds for them.
readinessProbe:
  httpGet:
    path: /readyz
    port: http
  periodSeconds: 5
  timeoutSeconds: 6
  failureThreshold: 3
{{- if eq $role "gateway" }}
lifecycle:
  preStop:
    exec:
      # The pod accepts requests until proxies know that it ends.
      command: ["sleep", "5"]
{{- end }}
resources:
  {{- toYaml $its.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
  {{- if $bubblewrap }}
  procMount: Unmasked
  {{- end }}
volumeMounts:
  - name: home
    mountPath: /var/lib/parley
  - name: tmp
    mountPath: /tmp
  - name: config
    mountPath: /etc/parley
    readOnly: true
  - name: secrets
    mountPath: {{ include "parley.secretsAt" $ }}
    readOnly: true
  - name: workspaces
    mountPath: {{ include "parley.workspacesAt" $ }}
  {{- with $.Values.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
