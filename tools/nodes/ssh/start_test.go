//go:build unix

package ssh_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/tools/nodes/ssh"
	"parley/tools/testlog"
)

// installFakeSSH makes a shell script the ssh of this test.
func installFakeSSH(t *testing.T, script string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return dir
}

func newConnector(t *testing.T) ssh.Connector {
	t.Helper()
	target, err := ssh.Parse("ssh://ops@box:2222")
	if err != nil {
		t.Fatal(err)
	}
	return ssh.Connector{Target: target, Env: os.Environ(), Log: slog.New(slog.DiscardHandler), Timing: ssh.Timing{Begin: time.Minute, End: time.Minute}}
}

var (
	testKey      = bytes.Repeat([]byte("k"), 32)
	testGreeting = ssh.Greeting{Key: testKey, Name: "ssh-ops-box-2222"}
)

// helloScript prints a node's first line.
const helloScript = `echo '{"parley_node":1,"key":"a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=","release":"1.0","capabilities":["exec"]}'` + "\n"

// Each problem has its own words and a remedy.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		kind   ssh.Kind
		says   string
		remedy string
	}{
		"no way":      {"echo 'Host key verification failed.' >&2; exit 255", ssh.SSHFailed, "ssh can't connect: Host key verification failed.", "run `ssh -p 2222 ops@box true`"},
		"no words":    {"exit 255", ssh.SSHFailed, "it doesn't say why", "ssh -p 2222 ops@box true"},
		"no parley":   {"echo 'sh: parley: not found' >&2; exit 127", ssh.ProgramMissing, "there is no parley", `runs_on = "ssh://ops@box:2222/opt/parley/bin/parley"`},
		"not to run":  {"exit 126", ssh.ProgramMissing, "there is no parley", "install parley there"},
		"old":         {"echo 'parley: unknown flag --stdio' >&2; exit 2", ssh.ProgramTooOld, "too old", "the same release"},
		"another one": {`echo '{"parley_node":7,"key":"x"}'; cat`, ssh.ForeignOutput, "", ""},
		"version":     {strings.Replace(helloScript, `node":1`, `node":2`, 1) + "cat", ssh.OtherVersion, "different protocol", "the same release"},
		"setup":       {"echo 'log' >&2; echo 'parley: what is wrong' >&2; exit 78", ssh.ProgramEnded, "ended with code 78: parley: what is wrong", "parley node --stdio --check"},
		"noise":       {"echo 'Welcome to \033[1mbox\033[0m'; cat", ssh.ForeignOutput, `writes first there: "Welcome to [1mbox [0m"`, ".bashrc"},
		"noise only":  {"printf 'Password: '; exit 0", ssh.ForeignOutput, `"Password:"`, ".bashrc"},
		"much noise":  {"head -c 100000 /dev/zero | tr '\\0' x; cat", ssh.ForeignOutput, "xxx", ".bashrc"},
		"later noise": {helloScript + "read x; echo oh; cat", ssh.ForeignOutput, `"oh"`, ".bashrc"},
		"refusal":     {helloScript + `read x; echo '{"refused":"another server"}'; cat`, ssh.ProgramRefuses, "the parley there refuses: another server", "--check"},
		"end":         {helloScript + "read x; exit 1", ssh.ProgramEnded, "code 1", "--check"},
	} {
		t.Run(name, func(t *testing.T) {
			installFakeSSH(t, c.script)
			_, err := newConnector(t).Connect(t.Context(), testGreeting)
			p, ok := errors.AsType[*ssh.Problem](err)
			if !ok || p.Kind != c.kind || !strings.Contains(p.Error(), c.says) || !strings.Contains(p.Remedy(newConnector(t).Target), c.remedy) {
				t.Errorf("it is %v", err)
				if ok {
					t.Errorf("of the kind %d, remedy %q", p.Kind, p.Remedy(newConnector(t).Target))
				}
			}
		})
	}
}

func TestNoSSH(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := newConnector(t).Check(t.Context())
	if p, ok := errors.AsType[*ssh.Problem](err); !ok || p.Kind != ssh.SSHMissing || !strings.Contains(p.Remedy(newConnector(t).Target), "openssh-client") {
		t.Errorf("it is %v", err)
	}
}

// An ssh that is silent, and doesn't end when it is told to, is killed with the processes that it has started.
func TestSilence(t *testing.T) {
	dir := installFakeSSH(t, "trap '' HUP INT TERM PIPE\necho $$ > $(dirname $0)/pid\nsleep 1000 & wait; wait; sleep 1000")
	w := newConnector(t)
	w.Timing = ssh.Timing{Begin: 100 * time.Millisecond, End: 100 * time.Millisecond}
	_, err := w.Connect(t.Context(), testGreeting)
	if p, ok := errors.AsType[*ssh.Problem](err); !ok || p.Kind != ssh.NoOutput {
		t.Errorf("it is %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Skip("this machine is too slow for this test") // the shell was killed before it could say who it is
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for late := time.Now().Add(20 * time.Second); syscall.Kill(-pid, 0) == nil; <-time.After(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("it runs on")
		}
	}
}

// The connection carries the data after the preamble, and ssh ends with it. ssh gets only the environment that it
// needs.
func TestConnection(t *testing.T) {
	dir := installFakeSSH(t, "env > $(dirname $0)/env\nprintf '%s\\n' \"$@\" > $(dirname $0)/args\necho 'the password is hunter2' >&2\n"+helloScript+"read x; echo '{}'; exec cat")
	w := newConnector(t)
	w.Env = append(os.Environ(), "PARLEY_SECRET=hunter2", "HOME=/home/of/the/server", "SSH_AUTH_SOCK=/agent", "LC_ALL=C", "LD_PRELOAD=/evil.so", "DISPLAY=:0")
	var log testlog.Buffer
	w.Log, w.Redact = slog.New(slog.NewTextHandler(&log, nil)), func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
	c, err := w.Connect(t.Context(), testGreeting)
	if err != nil {
		t.Fatal(err)
	}
	if c.Hello.Release != "1.0" || !bytes.Equal(c.Hello.Key, testKey) || !slices.Equal(c.Hello.Capabilities, []string{"exec"}) {
		t.Errorf("the node says %+v", c.Hello)
	}
	if _, err := c.Write([]byte("there and back")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	if n, err := c.Read(got); err != nil || string(got[:n]) != "there and back" {
		t.Errorf("it carries %q, %v", got[:n], err)
	}
	if err := c.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(got); err != os.ErrDeadlineExceeded { //nolint:errorlint // net/http looks at the error itself
		t.Errorf("after its deadline: %v", err)
	}
	_ = c.Close()
	c.Wait()
	env, _ := os.ReadFile(filepath.Join(dir, "env"))
	for _, want := range []string{"HOME=/home/of/the/server", "SSH_AUTH_SOCK=/agent", "LC_ALL=C", "PATH="} {
		if !strings.Contains(string(env), want) {
			t.Errorf("ssh doesn't get %s", want)
		}
	}
	for _, secret := range []string{"hunter2", "LD_PRELOAD", "DISPLAY"} {
		if strings.Contains(string(env), secret) {
			t.Errorf("ssh gets %s", secret)
		}
	}
	args, _ := os.ReadFile(filepath.Join(dir, "args"))
	all := strings.Split(strings.TrimSpace(string(args)), "\n")
	if end := []string{"-p", "2222", "-l", "ops", "--", "box", "parley node --stdio"}; !slices.Equal(all[len(all)-len(end):], end) {
		t.Errorf("ssh is started with %q", all)
	}
	for _, want := range []string{"-T", "-a", "-x", "BatchMode=yes", "ClearAllForwardings=yes", "PermitLocalCommand=no", "ControlPath=none"} {
		if !slices.Contains(all, want) {
			t.Errorf("ssh is started without %s: %q", want, all)
		}
	}
	if text := log.String(); !strings.Contains(text, "the password is ***") || strings.Contains(text, "hunter2") {
		t.Errorf("the log has %s", text)
	}
}

// The end of the context ends ssh, even before the link begins.
func TestTheContextEnds(t *testing.T) {
	dir := installFakeSSH(t, "echo > $(dirname $0)/begun\nexec cat")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				cancel()
				return
			}
			<-time.After(time.Millisecond)
		}
	}()
	if _, err := newConnector(t).Connect(ctx, testGreeting); !errors.Is(err, context.Canceled) {
		t.Errorf("it is %v", err)
	}
}

// Check begins no link: the server sends nothing.
func TestCheck(t *testing.T) {
	dir := installFakeSSH(t, "for last; do :; done; echo \"$last\" > $(dirname $0)/last\n"+helloScript+"cat > $(dirname $0)/said")
	h, err := newConnector(t).Check(t.Context())
	if err != nil || h.Release != "1.0" {
		t.Errorf("it is %+v, %v", h, err)
	}
	last, _ := os.ReadFile(filepath.Join(dir, "last"))
	said, _ := os.ReadFile(filepath.Join(dir, "said"))
	if string(last) != "parley node --stdio --check\n" || len(said) > 0 {
		t.Errorf("%q was run there, and told %q", last, said)
	}
}
