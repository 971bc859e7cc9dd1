package webhook

// alertmanagerText is the template for Alertmanager if none is configured. It prints how many alerts are firing and
// which ones, what each is about, where to look, and where to silence it.
const alertmanagerText = `
{{- $firing := where .alerts "status" "firing" -}}
{{- $resolved := where .alerts "status" "resolved" -}}
{{- $name := or .groupLabels.alertname .commonLabels.alertname (index (first 1 .alerts) 0).labels.alertname .receiver -}}
{{- if $firing }}🔥 **{{ size $firing }} firing{{ if $resolved }}, {{ size $resolved }} resolved{{ end }} · {{ line $name }}**
{{- else }}✅ **{{ if eq (size $resolved) 1 }}Resolved{{ else }}{{ size $resolved }} resolved{{ end }} · {{ line $name }}**{{ end }}
{{ labels .commonLabels }}
{{- $all := . -}}
{{ range first 10 .alerts }}

{{ if and $firing (eq .status "resolved") }}✅ {{ end }}{{ lines
	(bold .annotations.summary)
	(truncate 1000 (or .annotations.description .annotations.message))
	(labels .labels $all.commonLabels)
	(when .)
	(links "Source" .generatorURL "Runbook" .annotations.runbook_url "Dashboard" (or .dashboardURL .annotations.dashboard_url)
		"Panel" .panelURL "Silence" .silenceURL)
}}
{{- end }}

{{ lines (more 10 .alerts .truncatedAlerts) (links "Silence" (silence . $firing) "Alertmanager" .externalURL) }}`

// githubText is the template for GitHub if none is configured: it defines one template for each event that it
// knows, and "other" for the rest.
const githubText = `
{{- define "repo" }}**{{ with link .repository.full_name .repository.html_url }}{{ . }}{{ else }}{{ or .organization.login "GitHub" }}{{ end }}**{{ end }}

{{- define "push" }}{{ template "repo" . }} · {{ or .sender.login .pusher.name "somebody" }}
{{- if .deleted }} deleted {{ code (branch .ref) }}
{{- else if and .created (not .commits) }} created {{ code (branch .ref) }}
{{- else if .commits }} {{ if .forced }}force-{{ end }}pushed {{ link (count (size .commits) "one commit" "commits") .compare }}{{ with code (branch .ref) }} to {{ . }}{{ end }}
{{- else }} {{ if .forced }}force-{{ end }}{{ link "pushed" .compare }} no new commits{{ with code (branch .ref) }} to {{ . }}{{ end }}{{ end }}
{{ range first 10 .commits }}
- {{ link (short .id) .url }} {{ headline .message }} ({{ .author.name }})
{{- end }}
{{ more 10 .commits 0 }}{{ end }}

{{- define "pull_request" }}{{ template "repo" . }} · {{ .sender.login }} {{ if and (eq .action "closed") .pull_request.merged }}merged{{ else }}{{ words .action }}{{ end }} {{ if .pull_request.draft }}draft {{ end }}{{ numbered .pull_request }}
{{ with .pull_request.head.ref }}{{ code . }} → {{ code $.pull_request.base.ref }}{{ end }}{{ with .pull_request.changed_files }} · {{ if eq (plain .) "1" }}one file{{ else }}{{ . }} files{{ end }}, +{{ $.pull_request.additions }} −{{ $.pull_request.deletions }}{{ end }}
{{ if eq .action "opened" }}
{{ quote .pull_request.body }}{{ end }}{{ end }}

{{- define "issues" }}{{ template "repo" . }} · {{ .sender.login }} {{ words .action }} {{ numbered .issue }}
{{- if .label }} ({{ .label.name }}){{ else if .assignee }} ({{ .assignee.login }}){{ end }}
{{ if eq .action "opened" }}
{{ quote .issue.body }}{{ end }}{{ end }}

{{- define "issue_comment" }}{{ template "repo" . }} · {{ .sender.login }} {{ if ne .action "created" }}{{ words .action }} a comment{{ else }}{{ link "commented" .comment.html_url }}{{ end }} on {{ numbered .issue }}
{{ if ne .action "deleted" }}
{{ quote .comment.body }}{{ end }}{{ end }}

{{- define "mark" }}{{ if eq . "success" }}✅ {{ else if eq . "failure" "timed_out" "startup_failure" "error" }}❌ {{ else if eq . "cancelled" "action_required" "stale" }}⚠️ {{ end }}{{ end }}

{{- define "workflow_run" }}{{ template "mark" (plain .workflow_run.conclusion) }}{{ template "repo" . }} · {{ link (or .workflow_run.name .workflow.name "workflow") .workflow_run.html_url }}: {{ words (or .workflow_run.conclusion .workflow_run.status .action) }}
{{ code .workflow_run.head_branch }} {{ headline .workflow_run.head_commit.message }}{{ with .workflow_run.head_commit.author.name }} ({{ . }}){{ end }}{{ end }}

{{- define "check_run" }}{{ template "mark" (plain .check_run.conclusion) }}{{ template "repo" . }} · {{ link .check_run.name (or .check_run.html_url .check_run.details_url) }}: {{ words (or .check_run.conclusion .check_run.status .action) }}
{{ code .check_run.check_suite.head_branch }} {{ short .check_run.head_sha }}
{{ with .check_run.output.title }}{{ line . }}{{ end }}{{ end }}

{{- define "release" }}{{ template "repo" . }} · {{ .sender.login }} {{ words .action }} {{ if .release.prerelease }}pre-release{{ else }}release{{ end }} {{ link (or .release.name .release.tag_name) .release.html_url }}{{ if .release.name }} ({{ .release.tag_name }}){{ end }}
{{ if eq .action "published" "released" "created" }}
{{ quote .release.body }}{{ end }}{{ end }}

{{- define "deployment_status" }}{{ template "mark" (plain .deployment_status.state) }}{{ template "repo" . }} · deployment to {{ link .deployment.environment (or .deployment_status.environment_url .deployment_status.target_url) }}: {{ words .deployment_status.state }}
{{ code .deployment.ref }} {{ short .deployment.sha }} by {{ or .deployment.creator.login .sender.login }}{{ with or .deployment_status.log_url .deployment_status.target_url }} · {{ link "Log" . }}{{ end }}
{{ with .deployment_status.description }}{{ line . }}{{ end }}{{ end }}

{{- define "star" }}{{ template "repo" . }} · {{ .sender.login }} {{ if eq .action "deleted" }}took a star back{{ else }}⭐ starred it{{ end }}{{ with .repository.stargazers_count }} ({{ . }} now){{ end }}{{ end }}

{{- define "other" }}{{ template "repo" . }} · {{ with .sender.login }}{{ . }} · {{ end }}{{ link (words .event) (about .) }}{{ with .action }}: {{ words . }}{{ end }}{{ end }}`

// jsonText is the template for plain JSON if none is configured: the field text, or everything that was posted.
const jsonText = `{{ if .text }}{{ .text }}{{ else }}{{ json . }}{{ end }}`
