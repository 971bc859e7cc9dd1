//go:build linux

package nodes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// runModel plays a model that makes the node pi run what a person says, and answers with the result.
func runModel(r agenttest.Request) agenttest.Response {
	last := r.Messages()[len(r.Messages())-1]
	if last.Role == "tool" {
		return agenttest.Reply("it gave " + last.Content)
	}
	if !slices.Contains(r.Tools(), "pi__exec_shell") {
		return agenttest.Reply("no such tool")
	}
	_, command, _ := strings.Cut(last.Content, "run: ")
	command, _, _ = strings.Cut(command, ";;")
	if strings.Contains(last.Content, "any run: ") {
		return agenttest.Calls(agenttest.Call("nodes", fmt.Sprintf(`{"action":"invoke","node":"any:exec","tool":"exec_shell","args":{"command":%q}}`, command)))
	}
	return agenttest.Calls(agenttest.Call("pi__exec_shell", fmt.Sprintf(`{"command":%q}`, command)))
}

// A node is a device that has joined a server and has a home of its own.
type node struct {
	t     *testing.T
	world *parleytest.World // the world in which its commands run
	cmd   *exec.Cmd
	log   *parleytest.SyncBuffer
}

// join makes a device join the server as the node pi.
func join(w *parleytest.HTTPWorld) *node {
	t := w.T
	t.Helper()
	out, errs, code := w.Run("nodes", "invite")
	found := regexp.MustCompile(`[a-z2-7]{5}-[a-z2-7]{5}`).FindString(out)
	if code != parleytest.ExitDone || found == "" {
		t.Fatalf("nodes invite ended with %d: %s%s", code, out, errs)
	}
	n := newNode(w, found)
	if _, _, code = n.world.Run("node", "join", w.URL, "aaaaa-aaaaa", "--name", "other"); code == parleytest.ExitDone {
		t.Error("a wrong code was accepted")
	}
	return n
}

// newNode makes a device join with a code.
func newNode(w *parleytest.HTTPWorld, invited string) *node {
	t := w.T
	t.Helper()
	own := *w.World
	own.Home, own.File = t.TempDir(), filepath.Join(t.TempDir(), "parley.toml")
	parleytest.Must(t, os.WriteFile(own.File, []byte("[node]\nname = \"pi\"\n"), 0o600))
	out, errs, code := own.Run("node", "join", w.URL, invited)
	if code != parleytest.ExitDone {
		t.Fatalf("node join ended with %d: %s%s", code, out, errs)
	}
	return &node{t: t, world: &own, log: &parleytest.SyncBuffer{}}
}

// start starts the node's process.
func (n *node) start(env ...string) {
	n.t.Helper()
	n.cmd = n.world.Command("node")
	n.cmd.Env = append(n.cmd.Env, env...)
	n.cmd.Stderr = n.log
	parleytest.Must(n.t, n.cmd.Start())
	cmd := n.cmd
	n.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if n.t.Failed() {
			n.t.Logf("the node said:\n%s", n.log.Tail())
		}
	})
}

// kill ends the node's process with SIGKILL.
func (n *node) kill() {
	n.t.Helper()
	parleytest.Must(n.t, n.cmd.Process.Kill())
	_ = n.cmd.Wait() // it was killed
}

// begun waits until a command has written the file runs, and returns the file's folder.
func (n *node) begun() (dir string) {
	n.t.Helper()
	parleytest.WaitFor(n.t, "the command to begin", func() bool {
		found := parleytest.FilesWith(n.t, filepath.Join(n.world.Home, "workspace"), "begun")
		if len(found) == 0 {
			return false
		}
		dir = filepath.Dir(found[0])
		return true
	})
	return dir
}

// here waits until the server has the node's link.
func here(w *parleytest.HTTPWorld) {
	w.T.Helper()
	parleytest.WaitFor(w.T, "the node to be here", func() bool {
		out, _, _ := w.Run("nodes")
		return strings.Contains(out, "here since")
	})
}

// joined returns a world with a running server and a node that has joined and has a link.
func joined(t *testing.T, model func(agenttest.Request) agenttest.Response, settings string) (*parleytest.HTTPWorld, *parleytest.Process, *node) {
	t.Helper()
	w := parleytest.ListenHTTP(parleytest.New(t, model, parleytest.WithShell+settings))
	w.NeedsSandbox()
	p := w.Up()
	w.Telegram.Say(1, 1, "hello") // so the owner has a chat
	w.WaitSaid(1, 1)
	n := join(w)
	n.start()
	here(w)
	return w, p, n
}

// accepted returns a world with a running server and a node that is accepted.
func accepted(t *testing.T, more string) (*parleytest.HTTPWorld, *parleytest.Process, *node) {
	t.Helper()
	t.Parallel()
	w, p, n := joined(t, runModel, "[nodes.pi]\nagents = [\"main\"]\n"+more)
	parleytest.Wants(t, w.WaitSaid(1, 2)[1], "The device pi (linux/", "has joined as a node", "parley nodes accept pi")
	w.Telegram.Say(2, 2, "run: echo early;;")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "no such tool")
	out, errs, code := w.Run("nodes", "accept", "pi", "--yes")
	if code != parleytest.ExitDone {
		t.Fatalf("nodes accept ended with %d: %s%s", code, out, errs)
	}
	parleytest.Wants(t, out, "exec_shell", "Accepted from pi")
	return w, p, n
}

// A device is invited, joins, is accepted, runs a command, and is removed again.
func TestANodeRunsACommand(t *testing.T) {
	w, p, n := accepted(t, "")
	w.Telegram.Say(2, 2, "run: echo hello from $((6*7));;")
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], "hello from 42")
	out, _, _ := w.Run("doctor")
	parleytest.Wants(t, out, "node pi")
	out, _, _ = w.Run("metrics")
	parleytest.Wants(t, out, `parley_node_up{node="pi"} 1`, `parley_node_calls_total{node="pi",result="ok"} 1`)
	n.kill()
	parleytest.WaitFor(t, "the node to be away", func() bool {
		out, _, _ := w.Run("nodes", "list")
		return strings.Contains(out, "away since")
	})
	w.Telegram.Say(3, 3, "run: echo nobody is there;;") // another conversation, which has read nothing untrusted yet
	parleytest.Wants(t, w.WaitSaid(3, 1)[0], "node_away", "the node pi has been away since")
	n.start()
	here(w)
	if _, errs, code := w.Run("nodes", "revoke", "pi", "--yes"); code != parleytest.ExitDone {
		t.Errorf("nodes revoke ended with %d: %s", code, errs)
	}
	w.Telegram.Say(4, 4, "run: echo removed;;")
	parleytest.Wants(t, w.WaitSaid(4, 1)[0], "no such tool")
	if out, _, _ = w.Run("--json", "logs", "--filter", "approval"); !strings.Contains(out, `"invited"`) || !strings.Contains(out, `"accepted"`) || !strings.Contains(out, `"revoked"`) {
		t.Errorf("the audit has %s", out)
	}
	p.Stop()
}

// A rule for a node's tool applies no matter how the tool is called.
func TestRulesForANodesTools(t *testing.T) {
	w, _, _ := accepted(t, "[tools]\ndeny = [\"pi__exec_shell(*secret*)\"]\nask = [\"pi__exec_shell(*careful*)\"]\n")
	for chat, say := range map[int64]string{11: "run: echo secret;;", 12: "any run: echo secret;;"} {
		w.Telegram.Say(chat, chat, say)
		parleytest.Wants(t, w.WaitSaid(chat, 1)[0], "pi__exec_shell was refused", "deny rule")
	}
	for chat, say := range map[int64]string{21: "run: echo careful;;", 22: "any run: echo careful;;"} {
		w.Telegram.Say(chat, chat, say)
		ask := parleytest.Requested(t, w.WaitSaid(chat, 1)[0])
		if _, errs, code := w.Run("approvals", "approve", ask); code != parleytest.ExitDone {
			t.Errorf("approve ended with %d: %s", code, errs)
		}
		said := w.WaitSaid(chat, 2)
		parleytest.Wants(t, said[len(said)-1], "careful")
	}
	w.Telegram.Say(31, 31, "any run: echo plain;;")
	parleytest.Wants(t, w.WaitSaid(31, 1)[0], "plain", "pi")
}

// The settings of a node say who approves its calls. Only these people and owners can.
func TestWhoApprovesTheCallsOfANode(t *testing.T) {
	w, _, _ := accepted(t, "approvers = [\"telegram:5\"]\n[tools]\nask = [\"pi__*\"]\n")
	for chat, by := range map[int64]int64{11: 5, 12: 1} {
		w.Telegram.Say(chat, chat, "run: echo careful;;")
		ask := parleytest.Requested(t, w.WaitSaid(chat, 1)[0])
		w.Telegram.Say(chat, chat, "/approve "+ask)
		parleytest.Wants(t, w.WaitSaid(chat, 2)[1], "only owners and the people who approve the calls of that node can")
		w.Telegram.Say(by, by, "/approve "+ask)
		parleytest.Wants(t, w.WaitSaid(chat, 3)[2], `"stdout":"careful`)
	}
}

// If the device's own rules require an approval, people are asked on the server, and the call runs once a person has
// approved it.
func TestADeviceWantsItsCallsApproved(t *testing.T) {
	w, _, n := accepted(t, "")
	n.kill()
	isAway(w)
	parleytest.Must(t, os.WriteFile(n.world.File, []byte("[node]\nname = \"pi\"\nask = [\"exec_shell(*careful*)\"]\n"), 0o600))
	n.start()
	here(w)
	for chat, say := range map[int64]string{11: "run: echo careful;;", 12: "any run: echo careful;;"} {
		w.Telegram.Say(chat, chat, say)
		asked := w.WaitSaid(chat, 1)[0]
		parleytest.Wants(t, asked, "the node pi runs it only if a person has approved it", "echo careful")
		w.Telegram.Say(1, 1, "/approve "+parleytest.Requested(t, asked))
		parleytest.Wants(t, w.WaitSaid(chat, 2)[1], `"stdout":"careful`)
	}
	w.Telegram.Say(13, 13, "run: echo careful;;")
	w.Telegram.Say(1, 1, "/deny "+parleytest.Requested(t, w.WaitSaid(13, 1)[0]))
	parleytest.Wants(t, w.WaitSaid(13, 2)[1], "permission_denied")
	w.Telegram.Say(14, 14, "run: echo plain;;")
	parleytest.Wants(t, w.WaitSaid(14, 1)[0], `"stdout":"plain`)
	for _, said := range w.WaitSaid(1, 2)[2:] { // nobody has to accept the node again
		if strings.Contains(said, "parley nodes accept") {
			t.Errorf("the owner was told %q", said)
		}
	}
}

// If a person stops a turn, its command on the node ends.
func TestACommandIsStopped(t *testing.T) {
	w, p, n := accepted(t, "")
	w.Telegram.Say(2, 2, waits)
	n.begun()
	w.Telegram.Say(2, 2, "/stop")
	parleytest.WaitFor(t, "the node to have ended it", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM node_calls WHERE cancelled = 1 AND ended > 0 AND outcome LIKE '%\"cancelled\"%'") == 1
	})
	p.Stop()
}

const waits = "run: echo begun >> runs; while [ ! -e go ]; do sleep 0.05; done; cat runs;;"

// If a node is killed in the middle of a call, it reports at its next start that the outcome is unknown.
func TestANodeIsKilled(t *testing.T) {
	w, p, n := accepted(t, "")
	w.Telegram.Say(2, 2, waits)
	n.begun()
	n.kill()
	n.start()
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], "outcome_unknown")
	p.Stop()
}

// If a server is killed in the middle of a call, the next one gets the outcome, and the person gets one answer.
func TestTheServerIsKilled(t *testing.T) {
	w, p, n := accepted(t, "")
	w.Telegram.Say(2, 2, waits)
	dir := n.begun()
	p.Kill()
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	p = w.Up()
	said := w.WaitSaid(2, 2)
	parleytest.Wants(t, said[1], "begun")
	if raw, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || string(raw) != "begun\n" {
		t.Errorf("the command was run as %q (%v)", raw, err)
	}
	p.Stop()
	if said := w.WaitSaid(2, 2); len(said) != 2 {
		t.Errorf("it was said %q", said)
	}
}
