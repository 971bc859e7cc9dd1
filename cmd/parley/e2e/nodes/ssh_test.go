//go:build linux

package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"parley/cmd/parley/parleytest"
)

// A box stands for a machine that ssh reaches. A fake ssh runs the commands on this machine, where parley is a script
// that starts the real program with another home.
type box struct {
	t    *testing.T
	home string
	bin  string // contains ssh and parley
}

// fakeSSH runs its last argument, as a shell at the other end does, and exits when the command does. If its process
// group is killed, the commands that it started keep running and see that their connection has ended.
const fakeSSH = `#!/bin/sh
printf '%%s\n' "$@" > %[1]s/args
env > %[1]s/env
for last; do :; done
echo $$ > %[1]s/new && mv %[1]s/new %[1]s/pid
cat | {
	setsid sh -c "$last" | cat
	kill -KILL 0 # that which reads, too
}
`

// newBox returns a box, and puts its ssh first in the PATH of a world.
func newBox(w *parleytest.World, settings string) *box {
	t := w.T
	t.Helper()
	b := &box{t: t, home: t.TempDir(), bin: t.TempDir()}
	path, err := parleytest.Binary()
	parleytest.Must(t, err)
	for name, text := range map[string]string{
		filepath.Join(b.home, "parley.toml"): settings,
		filepath.Join(b.bin, "ssh"):          fmt.Sprintf(fakeSSH, b.bin),
		filepath.Join(b.bin, "parley"):       fmt.Sprintf("#!/bin/sh\nexec %s --home %s --config %[2]s/parley.toml \"$@\" 2>> %s/log\n", path, b.home, b.bin),
	} {
		parleytest.Must(t, os.WriteFile(name, []byte(text), 0o755))
	}
	w.Env = append(w.Env, "PATH="+b.bin+":"+os.Getenv("PATH"), "API_SECRET=of-the-server")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the node in the box said:\n%s", b.read("log"))
		}
	})
	return b
}

// read returns the content of a file that ssh writes, or "" if there is no such file.
func (b *box) read(name string) string {
	raw, _ := os.ReadFile(filepath.Join(b.bin, name))
	return string(raw)
}

// pid returns the process id of the newest ssh.
func (b *box) pid() int {
	pid, err := strconv.Atoi(strings.TrimSpace(b.read("pid")))
	parleytest.Must(b.t, err)
	return pid
}

// kill kills ssh, but not what runs at its other end.
func (b *box) kill() {
	b.t.Helper()
	parleytest.Must(b.t, syscall.Kill(-b.pid(), syscall.SIGKILL))
}

// begun waits until a command has written the file runs in the box, and returns the file's folder.
func (b *box) begun() (dir string) {
	b.t.Helper()
	parleytest.WaitFor(b.t, "the command to begin", func() bool {
		found := parleytest.FilesWith(b.t, filepath.Join(b.home, "workspace"), "begun")
		if len(found) > 0 {
			dir = filepath.Dir(found[0])
		}
		return len(found) > 0
	})
	return dir
}

// ranOnce checks that the command ran once.
func (b *box) ranOnce(dir string) {
	b.t.Helper()
	if raw, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || string(raw) != "begun\n" {
		b.t.Errorf("the command was run as %q (%v)", raw, err)
	}
}

const overSSH = "[agents.main]\nruns_on = \"ssh://deploy@box.example.com:2222\"\n"

// waitCall is a call whose command waits until the file go exists, and then prints how often it has begun.
const waitCall = `call: exec_shell {"command":"echo begun >> runs; while [ ! -e go ]; do sleep 0.05; done; cat runs"};;`

// inBox returns a world with a running server whose agent works in a box.
func inBox(t *testing.T, settings, more string) (*parleytest.HTTPWorld, *parleytest.Process, *box) {
	t.Helper()
	w := parleytest.ListenHTTP(parleytest.New(t, jobModel, parleytest.WithShell+overSSH+more))
	w.NeedsSandbox()
	b := newBox(w.World, settings)
	p := w.Up()
	here(w)
	return w, p, b
}

// An agent works on a machine that ssh reaches, although no device has joined and no tools were accepted.
func TestAnAgentWorksOverSSH(t *testing.T) {
	t.Parallel()
	w, p, b := inBox(t, "[node]\ndeny = [\"exec_shell(*forbidden*)\"]\n", "[tools]\ndeny = [\"read_file(secrets/*)\"]\n[nodes.ssh-deploy-box-example-com-2222]\ntrusted = true\n")
	w.Telegram.Say(1, 1, `call: exec_shell {"command":"mkdir secrets; echo made in the box | tee secrets/key > made.txt"};; `+
		`call: read_file {"path":"made.txt"};; call: read_file {"path":"./secrets/key"};; call: exec_shell {"command":"echo forbidden"};;`)
	parleytest.Wants(t, w.WaitSaid(1, 1)[0], `"content":"made in the box\n"`, "read_file was refused", "exec_shell was refused")
	if there := parleytest.FilesWith(t, filepath.Join(b.home, "workspace"), "made in the box"); len(there) != 2 {
		t.Errorf("the box has %v", there)
	}
	args := strings.Split(strings.TrimSpace(b.read("args")), "\n")
	for _, want := range [][]string{{"-o", "BatchMode=yes"}, {"-p", "2222"}, {"-l", "deploy", "--", "box.example.com", "parley node --stdio"}} {
		if !strings.Contains(strings.Join(args, " "), strings.Join(want, " ")) {
			t.Errorf("ssh was started with %q, not with %q", args, want)
		}
	}
	if env := b.read("env"); strings.Contains(env, "of-the-server") || !strings.Contains(env, "HOME="+w.Home) {
		t.Errorf("ssh was given %s", env)
	}
	out, _, _ := w.Run("nodes")
	parleytest.Wants(t, out, "ssh-deploy-box-example-com-2222", "accepted", "here since", "main")
	out, _, _ = w.Run("doctor")
	parleytest.Wants(t, out, "ssh://deploy@box.example.com:2222", "ssh connects, and parley", "node ssh-deploy-box-example-com-2222")
	if _, errs, code := w.Run("nodes", "revoke", "ssh-deploy-box-example-com-2222", "--yes"); code == parleytest.ExitDone || !strings.Contains(errs, "runs_on is ssh://deploy@box.example.com:2222") {
		t.Errorf("revoke ended with %d: %s", code, errs)
	}
	pid := b.pid()
	p.Stop()
	if err := syscall.Kill(pid, 0); err == nil {
		t.Error("ssh runs on after the server has stopped")
	}
}

// If ssh is killed in the middle of a call, the call continues, and the next ssh gets its outcome.
func TestSSHIsKilledInACall(t *testing.T) {
	t.Parallel()
	w, p, b := inBox(t, "", "")
	w.Telegram.Say(1, 1, waitCall)
	dir, first := b.begun(), b.pid()
	b.kill()
	parleytest.WaitFor(t, "another ssh", func() bool { return b.pid() != first })
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	parleytest.Wants(t, w.WaitSaid(1, 1)[0], `"stdout":"begun\n"`)
	b.ranOnce(dir)
	p.Stop()
}

// A job continues when ssh and the server are killed, and the chat is told how it ended.
func TestAJobOverSSH(t *testing.T) {
	t.Parallel()
	w, p, b := inBox(t, "", "[nodes.ssh-deploy-box-example-com-2222]\ntrusted = true\n")
	w.Telegram.Say(2, 2, `call: exec_shell {"command":"echo begun >> $JOB_DIR/runs; while [ ! -e go ]; do sleep 0.05; done; exit 3","background":true};;`)
	dir, first := b.begun(), b.pid()
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], `"state":"running"`)
	b.kill()
	parleytest.WaitFor(t, "another ssh", func() bool { return b.pid() != first })
	p.Kill()
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "..", "..", "go"), nil, 0o600))
	p = w.Up()
	heard(w, p, "on the node ssh-deploy-box-example-com-2222", "ended with exit code 3")
	b.ranOnce(dir)
}

// If the server is killed in the middle of a call, the next server gets the outcome, even if the call has ended
// meanwhile.
func TestTheServerIsKilledInACallOverSSH(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"before the next link": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p, b := inBox(t, "", "")
			w.Telegram.Say(1, 1, waitCall)
			dir := b.begun()
			p.Kill()
			let := func() { parleytest.Must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600)) }
			if ends {
				let()
				parleytest.WaitFor(t, "the outcome in the journal", func() bool { return len(parleytest.FilesWith(t, filepath.Join(b.home, "stdio"), `"ended"`)) > 0 })
			}
			p = w.Up()
			if !ends {
				here(w)
				let()
			}
			parleytest.Wants(t, w.WaitSaid(1, 1)[0], `"stdout":"begun\n"`)
			b.ranOnce(dir)
			p.Stop()
		})
	}
}

// If the node is killed in the middle of a call over ssh, the outcome is unknown, and the call does not run again.
func TestTheNodeIsKilledInACallOverSSH(t *testing.T) {
	t.Parallel()
	w, p, b := inBox(t, "", "")
	w.Telegram.Say(1, 1, waitCall)
	dir := b.begun()
	for _, pid := range nodesOf(b) {
		parleytest.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	parleytest.Wants(t, w.WaitSaid(1, 1)[0], "outcome_unknown")
	b.ranOnce(dir)
	p.Stop()
}

// nodesOf returns the ids of the node's processes in a box.
func nodesOf(b *box) (pids []int) {
	b.t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	parleytest.Must(b.t, err)
	for _, one := range all {
		raw, _ := os.ReadFile(one) // it may have ended
		words := strings.Split(string(raw), "\x00")
		if slices.Contains(words, b.home) && slices.Contains(words, "--stdio") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(one)))
			parleytest.Must(b.t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}
