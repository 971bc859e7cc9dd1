package helm

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// settings is the configuration of a small fleet, which names two secrets and a host.
const settings = `
[bus]
url = "redis://:${file:/run/secrets/parley/redis}@redis:6379"
[store]
url = "${file:/run/secrets/parley/postgres.url}"
[workspace]
root = "/var/lib/parley-workspaces"
[model]
name = "demo"
[http]
public_url = "https://bot.example.com"
`

// These are the texts of the secrets.
const (
	redisText    = "r3d1s-0123456789"
	postgresText = "postgres://parley:p0stgres-0123456789@postgres/parley"
)

func secretTexts() map[string]string {
	return map[string]string{"redis": redisText, "postgres.url": postgresText}
}

// A given is a set of values by an operator, and what must come of it.
type given struct {
	name   string
	values tree
	want   expectation
	also   func(t *testing.T, r rendering)
}

func givens(t testing.TB) []given {
	with := func(secrets, rest string) tree {
		all := values(t, rest)
		if all == nil {
			all = tree{}
		}
		if _, ok := all["config"]; !ok {
			all["config"] = settings
		}
		if secrets == "own" {
			all["secrets"] = tree{"redis": redisText, "postgres.url": postgresText}
		}
		return all
	}
	usual := expectation{drain: 10 * time.Second, secret: "bot-parley"}
	own := expectation{drain: 10 * time.Second, secret: "bot-parley", secrets: secretTexts()}
	return []given{
		{"what it comes with", nil, usual, wantSecretsNamed},
		{"its own secrets", with("own", ""), own, nil},
		{"a secret that there is", with("", `{existingSecret: bots}`), expectation{drain: 10 * time.Second, secret: "bots"}, func(t *testing.T, r rendering) {
			if !strings.Contains(r.notes, "create secret generic bots --from-file=postgres.url --from-file=redis\n") {
				t.Errorf("the notes don't say how the secret is made:\n%s", r.notes)
			}
		}},
		{"an ingress", with("own", `{ingress: {enabled: true, host: bot.example.com, tlsSecret: tls, className: nginx, annotations: {a.b/c: "d"}}}`), own, wantIngress},
		{"replicas", with("own", `{gateway: {replicas: 3}, worker: {replicas: 20}, maxSurge: 25%}`), own, wantReplicas},
		{"autoscaling", with("own", `{worker: {autoscaling: {enabled: true, min: 4, max: 40}}}`), own, wantAutoscaler},
		{"bubblewrap", with("own", `{worker: {bubblewrap: true}}`), own, wantBubblewrap},
		{"a long drain", with("", `{config: "bus.url = 'x'\nstore.url = 'y' # /var/lib/parley-workspaces\n[serve]\nmax_in_flight = 9\n  drain = \"1m30s\"\n"}`),
			expectation{drain: 90 * time.Second, secret: "bot-parley"}, nil},
		{"a short drain", with("", `{config: "[bus]\n[store]\n# /var/lib/parley-workspaces\n[serve]\n# drain = \"20s\"\ndrain = '500ms'\n"}`), expectation{secret: "bot-parley"}, nil},
		{"settings with all sorts of characters", tree{"config": "\n  # ünï <&> \t\\ \"'` {{ .build.id }} $${X} - : |\n---\n" + settings}, usual, nil},
		{"names and places", with("own", `{nameOverride: ann, image: {repository: registry.example.com/parley, tag: "1.2.3", pullSecrets: [pull]},
			workspaces: {existingClaim: files}, serviceAccount: {name: bots}, port: 8080, service: {type: LoadBalancer, annotations: {a: b}},
			env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}], volumes: [{name: skills, configMap: {name: skills}}], volumeMounts: [{name: skills, mountPath: /srv/skills, readOnly: true}],
			gateway: {podAnnotations: {a: b}, nodeSelector: {disk: fast}, tolerations: [{key: bots, operator: Exists}], resources: {limits: {memory: 2Gi}},
				affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}}`),
			expectation{drain: 10 * time.Second, secret: "bot-ann", secrets: secretTexts()}, wantPlaces},
		{"a long name", with("own", `{fullnameOverride: a.name-that-is-much-longer-than-kubernetes-lets-na-mes-of-services-be}`),
			expectation{drain: 10 * time.Second, secret: "a-name-that-is-much-longer-than-kubernetes-lets-na", secrets: secretTexts()}, nil},
	}
}

func TestRendered(t *testing.T) {
	for _, g := range givens(t) {
		t.Run(g.name, func(t *testing.T) {
			r, err := render(t, load(t), g.values)
			if err != nil {
				t.Fatal(err)
			}
			if err := check(r, g.want); err != nil {
				t.Error(err)
			}
			if !strings.Contains(r.notes, "rollout status") {
				t.Errorf("the notes don't say what to do next:\n%s", r.notes)
			}
			if set, ok := g.values["config"]; ok && having[*corev1.ConfigMap](r)[0].Data["parley.toml"] != set {
				t.Errorf("the settings are %q, want %q", having[*corev1.ConfigMap](r)[0].Data, set)
			}
			if g.also != nil {
				g.also(t, r)
			}
		})
	}
}

func TestLinted(t *testing.T) {
	for _, g := range givens(t) {
		found := lint.RunAll(chartAt, g.values, namespace, lint.WithKubeVersion(kubernetes(t)))
		for _, m := range found.Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("with %s: %v", g.name, m)
			}
		}
	}
}

// wantSecretsNamed checks that the notes and deploy/README.md name the secrets that the chart's default settings
// need.
func wantSecretsNamed(t *testing.T, r rendering) {
	readme, err := os.ReadFile("../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"model", "postgres", "redis", "telegram"} {
		if flag := " --from-file=" + name; !strings.Contains(r.notes, flag) || !strings.Contains(string(readme), flag) {
			t.Errorf("the notes or deploy/README.md leave the secret %s out", name)
		}
	}
}

func wantIngress(t *testing.T, r rendering) {
	all := having[*networkingv1.Ingress](r)
	if len(all) != 1 {
		t.Fatalf("there are %d", len(all))
	}
	spec := all[0].Spec
	if spec.Rules[0].Host != "bot.example.com" || len(spec.TLS) != 1 || spec.TLS[0].SecretName != "tls" || *spec.IngressClassName != "nginx" {
		t.Errorf("it is %+v", spec)
	}
	if paths := spec.Rules[0].HTTP.Paths; len(paths) != 1 || paths[0].Path != "/channels/" {
		t.Errorf("from outside, all of %v can be reached", paths)
	}
}

func wantReplicas(t *testing.T, r rendering) {
	for _, d := range having[*appsv1.Deployment](r) {
		if want := map[string]int32{"gateway": 3, "worker": 20}[role(d)]; *d.Spec.Replicas != want {
			t.Errorf("%s has %d, want %d", d.Name, *d.Spec.Replicas, want)
		}
	}
}

func wantAutoscaler(t *testing.T, r rendering) {
	all := having[*autoscalingv2.HorizontalPodAutoscaler](r)
	if len(all) != 1 || *all[0].Spec.MinReplicas != 4 || all[0].Spec.MaxReplicas != 40 {
		t.Errorf("it is %+v", all)
	}
}

// wantBubblewrap checks that only the workers give up protections, because only they run agents' commands.
func wantBubblewrap(t *testing.T, r rendering) {
	for _, d := range having[*appsv1.Deployment](r) {
		pod := d.Spec.Template.Spec
		open := pod.HostUsers != nil && !*pod.HostUsers && pod.SecurityContext.SeccompProfile.Type == corev1.SeccompProfileTypeUnconfined && pod.SecurityContext.AppArmorProfile != nil && pod.Containers[0].SecurityContext.ProcMount != nil
		if open != (role(d) == "worker") {
			t.Errorf("bubblewrap works in %s: %v", d.Name, open)
		}
	}
}

func wantPlaces(t *testing.T, r rendering) {
	for _, d := range having[*appsv1.Deployment](r) {
		c := d.Spec.Template.Spec.Containers[0]
		if c.Image != "registry.example.com/parley:1.2.3" || c.Ports[0].ContainerPort != 8080 || d.Spec.Template.Spec.ServiceAccountName != "bots" || variable(c, "HTTPS_PROXY") == "" {
			t.Errorf("%s is %+v", d.Name, c)
		}
	}
	if made := len(having[*corev1.PersistentVolumeClaim](r)) + len(having[*corev1.ServiceAccount](r)); made != 0 {
		t.Errorf("%d objects are made that there are already", made)
	}
}

// A change that affects processes replaces their pods, and other changes don't.
func TestChangesRoll(t *testing.T) {
	pods := func(change func(tree)) map[string]string {
		all := tree{"config": settings, "secrets": tree{"redis": redisText, "postgres.url": postgresText}}
		change(all)
		r, err := render(t, load(t), all)
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string]string{}
		for _, d := range having[*appsv1.Deployment](r) {
			texts[role(d)] = d.Spec.Template.String()
		}
		return texts
	}
	before := pods(func(tree) {})
	for name, c := range map[string]struct {
		change func(tree)
		rolls  bool
	}{
		"settings": {func(v tree) { v["config"] = settings + "[log]\nlevel = \"debug\"\n" }, true},
		"a secret": {func(v tree) { v["secrets"].(tree)["redis"] = "another-text" }, true},
		"replicas": {func(v tree) { v["worker"], v["gateway"] = tree{"replicas": 9}, tree{"replicas": 9} }, false},
		"ingress":  {func(v tree) { v["ingress"] = tree{"enabled": true, "host": "bot.example.com"} }, false},
	} {
		after := pods(c.change)
		for role := range before {
			if got := after[role] != before[role]; got != c.rolls {
				t.Errorf("other %s roll the %ss: %v, want %v", name, role, got, c.rolls)
			}
		}
	}
}

// Wrong values are refused, and the error says which value is wrong and why.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ values, words string }{
		{`{gateway: {replicas: 0}}`, "at '/gateway/replicas': minimum: got 0, want 1"},
		{`{worker: {replicas: three}}`, "at '/worker/replicas': got string, want integer"},
		{`{workers: {replicas: 3}}`, "additional properties 'workers' not allowed"},
		{`{gateway: {replica: 3}}`, "at '/gateway': additional properties 'replica' not allowed"},
		{`{maxSurge: 0}`, "at '/maxSurge'"},
		{`{maxSurge: "0%"}`, "at '/maxSurge'"},
		{`{worker: {resources: {limits: {memory: 1G}}}}`, "at '/worker/resources/limits/memory': '1G' does not match pattern"},
		{`{worker: {resources: {limits: {memory: null}}}}`, "missing property 'memory'"},
		{`{worker: {autoscaling: {cpu: 700}}}`, "at '/worker/autoscaling/cpu': maximum: got 700, want 100"},
		{`{worker: {autoscaling: {enabled: true, min: 5, max: 4}}}`, "worker.autoscaling.min (5) is above max (4)"},
		{`{image: {pullPolicy: Sometimes}}`, "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"},
		{`{ingress: {enabled: true}}`, "at '/ingress/host': minLength: got 0, want 1"},
		{`{ingress: {enabled: true, host: other.example.com}}`, "config doesn't have the ingress's host other.example.com"},
		{`{secrets: {telegram: 42}}`, "at '/secrets/telegram': got number, want string"},
		{`{secrets: {redis: ""}}`, "at '/secrets/redis': minLength: got 0, want 1"},
		{`{secrets: {"a/b": "c"}}`, "invalid propertyName 'a/b'"},
		{`{secrets: {redis: "0123456789"}}`, "config names the secret model, and secrets has none: add --set-file secrets.model=FILE"},
		{`{secrets: {redis: "0123456789", postgres: "p", model: "m", telegram: "t"}, existingSecret: bots}`, "both secrets and existingSecret (bots) are set"},
		{`{secrets: {redis: "0123456789"}, config: "[bus]\n[store]\n# /var/lib/parley-workspaces 0123456789"}`, "config contains the text of the secret redis"},
		{`{config: ""}`, "at '/config': minLength: got 0, want 1"},
		{`{config: {bus: {url: "x"}}}`, "at '/config': got object, want string"},
		{`{config: "[store]\nurl = 'x'"}`, "config has no [bus]"},
		{`{config: "[bus]\nurl = 'x'"}`, "config has no [store]"},
		{`{config: "[bus]\n[store]"}`, `write root = "/var/lib/parley-workspaces" in [workspace]`},
		{`{port: 80}`, "at '/port': minimum: got 80, want 1,024"},
		{`{fullnameOverride: Parley}`, "at '/fullnameOverride': 'Parley' does not match pattern"},
	} {
		_, err := render(t, load(t), values(t, c.values))
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s is refused with %v, want %q", c.values, err, c.words)
		}
	}
}

// A planted is a mistake in a file of the chart.
type planted struct{ file, was, is, words string }

func (p planted) plant(t *testing.T, c *chart.Chart) {
	t.Helper()
	for _, file := range c.Templates {
		if file.Name == "templates/"+p.file {
			if !bytes.Contains(file.Data, []byte(p.was)) {
				t.Fatalf("%s doesn't have %q", p.file, p.was)
			}
			file.Data = bytes.Replace(file.Data, []byte(p.was), []byte(p.is), 1)
			return
		}
	}
	t.Fatalf("there is no %s", p.file)
}

// The checks find mistakes in the chart.
func TestPlanted(t *testing.T) {
	for _, p := range []planted{
		{"_role.tpl", "replicas:", "replica:", `unknown field "spec.replica"`},
		{"_role.tpl", "maxUnavailable: 0", "maxUnavailable: 25%", "while bot-parley-gateway is rolled"},
		{"_role.tpl", "maxUnavailable: 0", "maxUnavailable: 0\n      maxUnavailable: 0", `key "maxUnavailable" already set`},
		{"_role.tpl", "type: RollingUpdate", "type: Recreate", "bot-parley-gateway isn't rolled"},
		{"_role.tpl", "  maxUnavailable: 1\n", "  minAvailable: 1\n", "doesn't let one pod go after another"},
		{"_role.tpl", "kind: PodDisruptionBudget", "kind: PodDisruptionBudgets", "PodDisruptionBudgets"},
		{"_role.tpl", "automountServiceAccountToken: false", "automountServiceAccountToken: true", "has a token for Kubernetes' API"},
		{"_role.tpl", "runAsUser: 65532", "runAsUser: 1000", "the image's user is 65532"},
		{"_role.tpl", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "may do more than it needs"},
		{"_role.tpl", "readOnlyRootFilesystem", "readonlyRootFilesystem", `unknown field "spec.template.spec.containers[0].securityContext.readonlyRootFilesystem"`},
		{"_role.tpl", "path: /readyz", "path: /ready", "has the readiness probe"},
		{"_role.tpl", "port: http\n  periodSeconds: 30", "port: web\n  periodSeconds: 30", "the liveness probe asks on 0"},
		{"_role.tpl", `(mul 2 (include`, `(mul 1 (include`, "to end, want 35s"},
		{"_role.tpl", "mountPath: /tmp", "mountPath: /var/tmp", `can't write to "/tmp"`},
		{"_role.tpl", "- name: tmp\n          emptyDir", "- name: temp\n          emptyDir", "mounts tmp, which is no volume"},
		{"_role.tpl", "value: /etc/parley/parley.toml", "value: /etc/parley.toml", "reads its settings from"},
		{"_role.tpl", "secretName: {{ include", "secretName: a-{{ include", "reads the Secret a-bot-parley"},
		{"_role.tpl", "  - name: GOMEMLIMIT", "  - name: MODEL\n    value: " + redisText + "\n  - name: GOMEMLIMIT", "has the text of the secret redis"},
		{"gateway.yaml", `(list . "gateway") | nindent 4`, `(list . "worker") | nindent 4`, "the Service leads to bot-parley-gateway: false"},
		{"gateway.yaml", "targetPort: http", "targetPort: https", "which bot-parley-gateway doesn't have"},
		{"worker.yaml", `(list . "worker")`, `(list . "gateway")`, "Deployment bot-parley-gateway is there twice"},
		{"workspaces.yaml", "ReadWriteMany", "ReadWriteOnce", "not all pods can mount"},
		{"ingress.yaml", "name: http", "name: web", "the Ingress leads to"},
		{"NOTES.txt", "Wait", "{{ .Values.secrets.redis }} Wait", "the notes have the text"},
		{"_helpers.tpl", "app.kubernetes.io/component: {{ index . 1 }}", "", "selects the pods of"},
	} {
		c := load(t)
		p.plant(t, c)
		r, err := render(t, c, tree{"config": settings, "secrets": tree{"redis": redisText, "postgres.url": postgresText}, "ingress": tree{"enabled": true, "host": "bot.example.com"}})
		if err == nil {
			err = check(r, expectation{drain: 10 * time.Second, secret: "bot-parley", secrets: secretTexts()})
		}
		if err == nil || !strings.Contains(err.Error(), p.words) {
			t.Errorf("%s instead of %s in %s is found as %v, want %q", p.is, p.was, p.file, err, p.words)
		}
	}
}
