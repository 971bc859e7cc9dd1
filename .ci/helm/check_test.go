package helm

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// An expectation is what given values must lead to.
type expectation struct {
	drain   time.Duration     // the setting [serve] drain
	secrets map[string]string // texts that only the Secret may contain
	secret  string            // name of the Secret
}

// A finding collects the problems of a rendering.
type finding struct{ errs []error }

func (f *finding) wrong(format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf(format, args...))
}

// check returns the problems of a rendering, or nil if it has none.
func check(r rendering, want expectation) error {
	f := &finding{}
	f.names(r)
	f.secrets(r, want)
	roles := map[string]bool{}
	for _, d := range having[*appsv1.Deployment](r) {
		for _, other := range having[*appsv1.Deployment](r) {
			if d != other && selects(d.Spec.Selector, other.Spec.Template.Labels) {
				f.wrong("%s selects the pods of %s", d.Name, other.Name)
			}
		}
		roles[role(d)] = true
		f.rolls(d)
		f.budget(r, d)
		f.confined(d)
		f.mounts(r, d)
		f.memory(d)
		f.probed(d)
		f.stops(d, want)
	}
	if len(roles) != 2 || !roles["gateway"] || !roles["worker"] {
		f.wrong("the roles are %v", roles)
	}
	f.reached(r)
	f.scaled(r)
	return errors.Join(f.errs...)
}

// names checks the names of all objects, and other limits of Kubernetes.
func (f *finding) names(r rendering) {
	seen := map[string]bool{}
	for _, o := range r.objects {
		if wrong := validation.IsDNS1123Label(o.GetName()); len(wrong) > 0 {
			f.wrong("%s is named %q: %s", o.kind, o.GetName(), wrong)
		}
		if id := o.kind + " " + o.GetName(); seen[id] {
			f.wrong("%s is there twice", id)
		} else {
			seen[id] = true
		}
		if o.GetNamespace() != namespace {
			f.wrong("%s %s is in the namespace %q", o.kind, o.GetName(), o.GetNamespace())
		}
		for key, text := range o.GetLabels() {
			if wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(text)...); len(wrong) > 0 {
				f.wrong("%s %s has the label %s=%q: %s", o.kind, o.GetName(), key, text, wrong)
			}
		}
		if o.GetLabels()["app.kubernetes.io/instance"] != release {
			f.wrong("%s %s doesn't say which release it belongs to", o.kind, o.GetName())
		}
	}
}

// secrets checks that there is one Secret and that no other object contains its texts.
func (f *finding) secrets(r rendering, want expectation) {
	made := having[*corev1.Secret](r)
	if len(want.secrets) == 0 && len(made) > 0 || len(want.secrets) > 0 && len(made) != 1 {
		f.wrong("there are %d Secrets", len(made))
	}
	for _, s := range made {
		if s.Name != want.secret {
			f.wrong("the Secret is %s, want %s", s.Name, want.secret)
		}
		for name := range s.Data {
			if wrong := validation.IsConfigMapKey(name); len(wrong) > 0 {
				f.wrong("the Secret has the name %q: %s", name, wrong)
			}
		}
		for name, text := range want.secrets {
			if string(s.Data[name]) != text {
				f.wrong("the Secret has another text for %s", name)
			}
		}
	}
	for name, text := range want.secrets {
		for _, o := range r.objects {
			if o.kind != "Secret" && (strings.Contains(o.text, text) || strings.Contains(o.text, base64.StdEncoding.EncodeToString([]byte(text)))) {
				f.wrong("%s %s has the text of the secret %s", o.kind, o.GetName(), name)
			}
		}
		if strings.Contains(r.notes, text) {
			f.wrong("the notes have the text of the secret %s", name)
		}
	}
	for _, d := range having[*appsv1.Deployment](r) {
		pod := d.Spec.Template.Spec
		for _, v := range pod.Volumes {
			if v.Secret != nil && v.Secret.SecretName != want.secret {
				f.wrong("%s reads the Secret %s, want %s", d.Name, v.Secret.SecretName, want.secret)
			}
		}
		for _, c := range pod.Containers {
			if len(c.EnvFrom) > 0 || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil }) {
				f.wrong("%s has secrets in its environment", d.Name)
			}
		}
	}
}

// rolls checks that an update keeps the full number of pods.
func (f *finding) rolls(d *appsv1.Deployment) {
	s := d.Spec.Strategy
	if s.Type != appsv1.RollingUpdateDeploymentStrategyType || s.RollingUpdate == nil || s.RollingUpdate.MaxUnavailable == nil || s.RollingUpdate.MaxSurge == nil {
		f.wrong("%s isn't rolled: %+v", d.Name, s)
		return
	}
	replicas := 1
	if d.Spec.Replicas != nil {
		replicas = int(*d.Spec.Replicas)
	}
	less := s.RollingUpdate.MaxUnavailable.String()
	more, err := intstr.GetScaledValueFromIntOrPercent(s.RollingUpdate.MaxSurge, replicas, true)
	if err != nil || less != "0" || more < 1 {
		f.wrong("while %s is rolled, %s pods may be missing and %d are started before: %v", d.Name, less, more, err)
	}
	if !selects(d.Spec.Selector, d.Spec.Template.Labels) {
		f.wrong("%s doesn't select its own pods", d.Name)
	}
	for _, spread := range d.Spec.Template.Spec.TopologySpreadConstraints {
		if !selects(spread.LabelSelector, d.Spec.Template.Labels) {
			f.wrong("%s spreads others' pods", d.Name)
		}
	}
	if len(d.Spec.Template.Spec.TopologySpreadConstraints) == 0 {
		f.wrong("all pods of %s may be on one node", d.Name)
	}
}

// budget checks that exactly one disruption budget covers the pods of a Deployment, and no other pods.
func (f *finding) budget(r rendering, d *appsv1.Deployment) {
	var covering []*policyv1.PodDisruptionBudget
	for _, b := range having[*policyv1.PodDisruptionBudget](r) {
		if selects(b.Spec.Selector, d.Spec.Template.Labels) {
			covering = append(covering, b)
		}
	}
	if len(covering) != 1 {
		f.wrong("%s has %d disruption budgets", d.Name, len(covering))
		return
	}
	spec := covering[0].Spec
	if spec.MinAvailable != nil || spec.MaxUnavailable == nil || spec.MaxUnavailable.IntValue() != 1 {
		f.wrong("the budget of %s doesn't let one pod go after another: %+v", d.Name, spec)
	}
	if spec.UnhealthyPodEvictionPolicy == nil || *spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
		f.wrong("no node can be drained while %s isn't ready", d.Name)
	}
}

// confined checks what a pod may do on its node.
func (f *finding) confined(d *appsv1.Deployment) {
	pod := d.Spec.Template.Spec
	user, err := imageUser()
	if err != nil {
		f.wrong("%v", err)
	}
	s := pod.SecurityContext
	if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser != user || s.FSGroup == nil || *s.FSGroup != user || s.SeccompProfile == nil {
		f.wrong("%s runs as %+v, and the image's user is %d", d.Name, s, user)
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || pod.ServiceAccountName == "" {
		f.wrong("%s has a token for Kubernetes' API", d.Name)
	}
	if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
		f.wrong("other Services set variables of %s", d.Name)
	}
	if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
		f.wrong("%s has %d containers", d.Name, len(pod.Containers))
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			f.wrong("%s may do more than it needs: %+v", d.Name, s)
		}
		unmasked := s != nil && s.ProcMount != nil && *s.ProcMount == corev1.UnmaskedProcMount
		if shared := pod.HostUsers == nil || *pod.HostUsers; unmasked && shared {
			f.wrong("%s sees all of /proc as a user of the node, which Kubernetes refuses", d.Name)
		}
	}
}

// imageUser returns the user that the Dockerfile runs the image as.
func imageUser() (int64, error) {
	raw, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		return 0, err
	}
	user := regexp.MustCompile(`(?m)^USER (\d+):`).FindSubmatch(raw)
	if user == nil {
		return 0, errors.New("the Dockerfile names no user")
	}
	return strconv.ParseInt(string(user[1]), 10, 64)
}

// mounts checks that everything that is mounted exists, and that folders that the program writes to are writable.
func (f *finding) mounts(r rendering, d *appsv1.Deployment) {
	pod := d.Spec.Template.Spec
	volumes := map[string]corev1.Volume{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = v
	}
	c := pod.Containers[0]
	settings := map[string]bool{}
	for _, m := range c.VolumeMounts {
		v, ok := volumes[m.Name]
		if !ok {
			f.wrong("%s mounts %s, which is no volume", d.Name, m.Name)
		}
		if kept := v.ConfigMap != nil || v.Secret != nil; kept && !m.ReadOnly {
			f.wrong("%s may write to %s", d.Name, m.MountPath)
		}
		for _, cm := range having[*corev1.ConfigMap](r) {
			if v.ConfigMap != nil && v.ConfigMap.Name == cm.Name {
				for name := range cm.Data {
					settings[path.Join(m.MountPath, name)] = true
				}
			}
		}
		if v.PersistentVolumeClaim != nil {
			f.claim(r, d, v.PersistentVolumeClaim.ClaimName)
		}
	}
	if at := variable(c, "PARLEY_CONFIG"); !settings[at] {
		f.wrong("%s reads its settings from %q, and there are %v", d.Name, at, settings)
	}
	for _, at := range []string{variable(c, "PARLEY_HOME"), "/tmp"} {
		if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return !m.ReadOnly && (at == m.MountPath || strings.HasPrefix(at, m.MountPath+"/")) && volumes[m.Name].EmptyDir != nil
		}) {
			f.wrong("%s can't write to %q", d.Name, at)
		}
	}
}

// claim checks the chart's own volume claim, which all pods mount.
func (f *finding) claim(r rendering, d *appsv1.Deployment, name string) {
	for _, claim := range having[*corev1.PersistentVolumeClaim](r) {
		switch {
		case claim.Name != name:
			f.wrong("%s mounts the claim %s, and the chart makes %s", d.Name, name, claim.Name)
		case !slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteMany):
			f.wrong("not all pods can mount %s", name)
		case claim.Annotations["helm.sh/resource-policy"] != "keep":
			f.wrong("%s is deleted with the release", name)
		}
	}
}

// memory checks that the program frees memory before the kernel ends it.
func (f *finding) memory(d *appsv1.Deployment) {
	c := d.Spec.Template.Spec.Containers[0]
	text, ok := strings.CutSuffix(variable(c, "GOMEMLIMIT"), "MiB")
	soft, err := strconv.ParseInt(text, 10, 64)
	hard := c.Resources.Limits.Memory().Value()
	if soft <<= 20; !ok || err != nil || soft < hard/2 || soft > hard*3/4 {
		f.wrong("the memory of %s is bounded by %s and %d: want a third between them", d.Name, variable(c, "GOMEMLIMIT"), hard)
	}
	if c.Resources.Requests.Memory().Value() > hard || c.Resources.Requests.Cpu().IsZero() {
		f.wrong("%s asks for %v", d.Name, c.Resources)
	}
}

// probed checks the probes: they use the program's port and paths that, as TestFleet checks, the program serves.
func (f *finding) probed(d *appsv1.Deployment) {
	c := d.Spec.Template.Spec.Containers[0]
	listens := strings.TrimPrefix(c.Args[slices.Index(c.Args, "--listen")+1], ":")
	for name, want := range map[string]string{"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"} {
		p := map[string]*corev1.Probe{"startup": c.StartupProbe, "liveness": c.LivenessProbe, "readiness": c.ReadinessProbe}[name]
		if p == nil || p.HTTPGet == nil || p.HTTPGet.Path != want {
			f.wrong("%s has the %s probe %v, want %s", d.Name, name, p, want)
			continue
		}
		if at := strconv.Itoa(int(portOf(c, p.HTTPGet.Port))); at != listens {
			f.wrong("%s listens on %s, and the %s probe asks on %s", d.Name, listens, name, at)
		}
	}
}

// stops checks that a pod has enough time to end.
func (f *finding) stops(d *appsv1.Deployment, want expectation) {
	pod := d.Spec.Template.Spec
	var before time.Duration
	if l := pod.Containers[0].Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Exec != nil {
		seconds, err := strconv.Atoi(l.PreStop.Exec.Command[1])
		if err != nil || l.PreStop.Exec.Command[0] != "sleep" {
			f.wrong("before %s is stopped, %v runs", d.Name, l.PreStop.Exec.Command)
		}
		before = time.Duration(seconds) * time.Second
	} else if role(d) == "gateway" {
		f.wrong("%s stops listening while requests are on their way to it", d.Name)
	}
	least := before + 2*want.drain + 10*time.Second // the same sum as in the docs and in parley.service
	if got := pod.TerminationGracePeriodSeconds; got == nil || time.Duration(*got)*time.Second != least {
		f.wrong("%s has %v to end, want %v", d.Name, got, least)
	}
}

// reached checks the Service and the Ingress: requests reach only gateways.
func (f *finding) reached(r rendering) {
	services := having[*corev1.Service](r)
	if len(services) != 1 {
		f.wrong("there are %d Services", len(services))
		return
	}
	s := services[0]
	for _, d := range having[*appsv1.Deployment](r) {
		if to := labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(d.Spec.Template.Labels)); to != (role(d) == "gateway") {
			f.wrong("the Service leads to %s: %v", d.Name, to)
		}
		if portOf(d.Spec.Template.Spec.Containers[0], s.Spec.Ports[0].TargetPort) == 0 {
			f.wrong("the Service leads to the port %v, which %s doesn't have", s.Spec.Ports[0].TargetPort, d.Name)
		}
	}
	for _, i := range having[*networkingv1.Ingress](r) {
		for _, rule := range i.Spec.Rules {
			if rule.Host == "" || rule.HTTP == nil || len(rule.HTTP.Paths) == 0 {
				f.wrong("the Ingress takes requests to any host, or to no path: %+v", rule)
				continue
			}
			for _, p := range rule.HTTP.Paths {
				if to := p.Backend.Service; to == nil || to.Name != s.Name || to.Port.Name != s.Spec.Ports[0].Name || p.PathType == nil {
					f.wrong("the Ingress leads to %+v", p.Backend)
				}
			}
		}
	}
}

// scaled checks that no autoscaler competes with a fixed number of replicas.
func (f *finding) scaled(r rendering) {
	targets := map[string]bool{}
	for _, a := range having[*autoscalingv2.HorizontalPodAutoscaler](r) {
		targets[a.Spec.ScaleTargetRef.Name] = true
	}
	for _, d := range having[*appsv1.Deployment](r) {
		if (d.Spec.Replicas == nil) != targets[d.Name] {
			f.wrong("%s has the replicas %v, and an autoscaler: %v", d.Name, d.Spec.Replicas, targets[d.Name])
		}
		delete(targets, d.Name)
	}
	for name := range targets {
		f.wrong("the autoscaler scales %s, which isn't there", name)
	}
}

// role returns the role of a Deployment's processes.
func role(d *appsv1.Deployment) string {
	args := d.Spec.Template.Spec.Containers[0].Args
	if i := slices.Index(args, "--role"); i >= 0 {
		return args[i+1]
	}
	return ""
}

// selects reports whether a selector matches labels. An empty selector matches none.
func selects(s *metav1.LabelSelector, l map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(l))
}

// portOf returns the number of a container's port, or 0 if no port has that name.
func portOf(c corev1.Container, of intstr.IntOrString) int32 {
	for _, p := range c.Ports {
		if of.Type == intstr.String && p.Name == of.StrVal || of.Type == intstr.Int && p.ContainerPort == of.IntVal {
			return p.ContainerPort
		}
	}
	return 0
}

func variable(c corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}
