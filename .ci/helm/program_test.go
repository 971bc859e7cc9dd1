package helm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// served is the configuration of the fleet that TestFleet serves. The built-in model answers.
const served = `
[bus]
url = "${file:/run/secrets/parley/redis}"
prefix = "%s"
[store]
url = "${file:/run/secrets/parley/postgres}"
[workspace]
root = "/var/lib/parley-workspaces"
[serve]
drain = "2s"
[model]
name = "demo"
[http]
hosts = ["bot-parley.chat"]
[tokens.ci]
token = "${file:/run/secrets/parley/ci}"
may = ["agent"]
`

// newNode returns this machine as a node, with an empty volume for workspaces.
func newNode(t *testing.T) node {
	t.Helper()
	program, err := filepath.Abs("../../bin/parley")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("make chart builds the program first")
	}
	if out, err := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").CombinedOutput(); err != nil {
		t.Skipf("bubblewrap makes no pods here: %v: %s", err, out)
	}
	return node{program: program, workspaces: writable(t)}
}

// The chart's default settings are valid, and the notes name only commands that exist.
func TestSettings(t *testing.T) {
	on := newNode(t)
	texts := tree{"redis": "0123456789", "postgres": "0123456789", "model": "sk-some-key-of-a-model", "telegram": "42:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}
	r, err := render(t, load(t), tree{"secrets": texts})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"gateway", "worker"} {
		if out, err := on.pod(t, r, role).run("config", "check", "--role", role); err != nil || strings.Contains(out, "note:") {
			t.Errorf("the settings of the %s: %v\n%s", role, err, out)
		}
	}
	for _, command := range regexp.MustCompile(`-- parley (.+)`).FindAllStringSubmatch(r.notes, -1) {
		if out, err := on.pod(t, r, "gateway").run(append(strings.Fields(command[1]), "--help")...); err != nil {
			t.Errorf("the notes say parley %s: %v\n%s", command[1], err, out)
		}
	}
}

// A gateway and a worker run as the chart says, and answer.
func TestFleet(t *testing.T) {
	redis, database := os.Getenv("PARLEY_TEST_REDIS_URL"), os.Getenv("PARLEY_TEST_DATABASE_URL")
	if redis == "" || database == "" {
		t.Skip("make chart starts a Redis and a PostgreSQL for it")
	}
	const token = "a-token-of-a-program-0123456789"
	on := newNode(t)
	config := fmt.Sprintf(served, "helm-"+filepath.Base(t.TempDir())+fmt.Sprint(time.Now().UnixNano()))
	pods := map[string]*pod{}
	for _, role := range []string{"gateway", "worker"} {
		r, err := render(t, load(t), tree{"config": config, "port": freePort(t), "secrets": tree{"redis": redis, "postgres": database, "ci": token}})
		if err != nil {
			t.Fatal(err)
		}
		pods[role] = on.pod(t, r, role)
		if out, err := pods[role].run("config", "check", "--role", role); err != nil {
			t.Fatalf("the settings of the %s: %v\n%s", role, err, out)
		}
		pods[role].start(t)
	}
	for _, p := range pods {
		p.probe(t, p.container.StartupProbe)
		p.probe(t, p.container.LivenessProbe)
		p.probe(t, p.container.ReadinessProbe)
	}
	talk(t, pods["gateway"], token)
	if _, err := os.Stat(filepath.Join(on.workspaces, "main", "web:ci")); err != nil {
		t.Errorf("the conversation has no folder in the workspaces: %v", err)
	}
	for _, p := range pods {
		p.stop(t)
	}
}

// talk asks the agent something, as a program in the cluster does, and waits for the answer.
func talk(t *testing.T, gateway *pod, token string) {
	t.Helper()
	ask := func(method, path, body string) (status int, answer string) {
		r, err := http.NewRequestWithContext(t.Context(), method, gateway.url()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = fmt.Sprintf("bot-parley.%s:%d", namespace, gateway.port())
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(raw)
	}
	status, said := ask("POST", "/v1/messages", `{"to": "agent", "text": "list the files"}`)
	var accepted struct{ Session string }
	if err := json.Unmarshal([]byte(said), &accepted); err != nil || status != http.StatusAccepted {
		t.Fatalf("the message was answered with %d: %s", status, said)
	}
	until(t, time.Minute, func() error {
		if status, log := ask("GET", "/v1/sessions/"+accepted.Session, ""); status != http.StatusOK || !strings.Contains(log, "turn_complete") && !strings.Contains(log, `"done"`) {
			return fmt.Errorf("%d: %s", status, log)
		}
		return nil
	})
}

// A node is this machine, on which pods run.
type node struct{ program, workspaces string }

// A pod is a process in a bubblewrap sandbox that has the properties of a Deployment.
type pod struct {
	spec      corev1.PodSpec
	container corev1.Container
	place     []string // the arguments of bubblewrap
	log       output
	running   *exec.Cmd
	pid       int // the process id of the program
	ended     chan error
}

// output is what a process has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// pod returns a pod of a role, with the image's programs, a read-only root file system, the volumes, and the
// environment.
func (n node) pod(t *testing.T, r rendering, of string) *pod {
	t.Helper()
	all := having[*appsv1.Deployment](r)
	spec := all[slices.IndexFunc(all, func(d *appsv1.Deployment) bool { return role(d) == of })].Spec.Template.Spec
	p := &pod{spec: spec, container: spec.Containers[0], ended: make(chan error, 1)}
	user := fmt.Sprint(*spec.SecurityContext.RunAsUser)
	p.place = []string{"--unshare-user", "--uid", user, "--gid", user, "--unshare-pid", "--as-pid-1", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL",
		"--clearenv", "--tmpfs", "/", "--proc", "/proc", "--dev", "/dev", "--ro-bind", n.program, "/usr/local/bin/parley"}
	for _, dir := range []string{"/usr/bin", "/usr/lib", "/usr/lib64", "/usr/share", "/etc/ssl"} {
		p.place = append(p.place, "--ro-bind-try", dir, dir)
	}
	p.place = append(p.place, "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "SQLITE_TMPDIR", "/var/lib/parley")
	for _, e := range p.container.Env {
		p.place = append(p.place, "--setenv", e.Name, e.Value)
	}
	for _, m := range p.container.VolumeMounts {
		v := spec.Volumes[slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })]
		how := "--bind"
		if m.ReadOnly {
			how = "--ro-bind"
		}
		p.place = append(p.place, how, n.volume(t, r, v), m.MountPath)
	}
	p.place = append(p.place, "--remount-ro", "/", "/usr/local/bin/parley")
	return p
}

// volume returns a folder with the contents of a volume.
func (n node) volume(t *testing.T, r rendering, v corev1.Volume) string {
	t.Helper()
	switch {
	case v.PersistentVolumeClaim != nil:
		return n.workspaces
	case v.EmptyDir != nil:
		return writable(t)
	case v.ConfigMap != nil:
		for _, c := range having[*corev1.ConfigMap](r) {
			if c.Name == v.ConfigMap.Name {
				files := map[string][]byte{}
				for name, text := range c.Data {
					files[name] = []byte(text)
				}
				return projected(t, files, 0o644)
			}
		}
	case v.Secret != nil:
		for _, s := range having[*corev1.Secret](r) {
			if s.Name == v.Secret.SecretName {
				return projected(t, s.Data, os.FileMode(*v.Secret.DefaultMode))
			}
		}
	}
	t.Fatalf("the volume %s is from nowhere", v.Name)
	return ""
}

// writable returns a folder like those that the kubelet makes for fsGroup: the group may write to it.
func writable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	return dir
}

// projected returns a folder with files as the kubelet writes them: links into a folder that is replaced as a whole.
func projected(t *testing.T, files map[string][]byte, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	errs := []error{os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "..1"), 0o755), os.Symlink("..1", filepath.Join(dir, "..data"))}
	for name, text := range files {
		at := filepath.Join(dir, "..1", name)
		errs = append(errs, os.WriteFile(at, text, mode), os.Chmod(at, mode), os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs a command of the program in the pod's sandbox.
func (p *pod) run(args ...string) (string, error) {
	out, err := exec.Command("bwrap", append(slices.Clone(p.place), args...)...).CombinedOutput()
	return string(out), err
}

// start starts the pod.
func (p *pod) start(t *testing.T) {
	t.Helper()
	told, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	p.running = exec.Command("bwrap", slices.Concat([]string{"--info-fd", "3"}, p.place, p.container.Args)...)
	p.running.Stdout, p.running.Stderr, p.running.ExtraFiles = &p.log, &p.log, []*os.File{tell}
	err = p.running.Start()
	if err := errors.Join(err, tell.Close()); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.running.Wait() }()
	t.Cleanup(func() {
		_ = p.running.Process.Kill()
		if t.Failed() {
			t.Logf("%v printed:\n%s", p.container.Args, p.log.String())
		}
	})
	var info struct {
		Pid int `json:"child-pid"`
	}
	if err := json.NewDecoder(told).Decode(&info); err != nil {
		t.Fatalf("bubblewrap: %v\n%s", err, p.log.String())
	}
	p.pid = info.Pid
}

func (p *pod) port() int32 { return p.container.Ports[0].ContainerPort }

func (p *pod) url() string { return fmt.Sprintf("http://127.0.0.1:%d", p.port()) }

// probe waits until a probe succeeds. Like the kubelet, it uses the pod's address.
func (p *pod) probe(t *testing.T, with *corev1.Probe) {
	t.Helper()
	until(t, time.Minute, func() error {
		select {
		case err := <-p.ended:
			t.Fatalf("%v ended: %v", p.container.Args, err)
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(max(with.TimeoutSeconds, 1))*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", portOf(p.container, with.HTTPGet.Port), with.HTTPGet.Path), http.NoBody)
		if err != nil {
			return err
		}
		r.Host = fmt.Sprintf("10.1.2.3:%d", p.port())
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s: %s", with.HTTPGet.Path, res.Status, body)
		}
		return nil
	})
}

// stop stops the pod as the kubelet does: it must end by itself within its grace period.
func (p *pod) stop(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(p.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("%v ended with %v", p.container.Args, err)
		}
	case <-time.After(time.Duration(*p.spec.TerminationGracePeriodSeconds) * time.Second):
		t.Errorf("%v didn't end in time", p.container.Args)
	}
}

// until waits until there returns no error, and fails the test with the last error.
func until(t *testing.T, most time.Duration, there func() error) {
	t.Helper()
	end := time.Now().Add(most)
	for {
		err := there()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
