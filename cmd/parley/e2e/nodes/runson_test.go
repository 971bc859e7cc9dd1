//go:build linux

package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// callModel plays a model that makes the calls that a person names, "NAME ARGUMENTS;;" each, one after another, and
// answers with the results.
func callModel(r agenttest.Request) agenttest.Response {
	calls := strings.Split(r.Said(), ";;")
	if made := len(r.Results()); made < len(calls)-1 {
		_, call, _ := strings.Cut(calls[made], "call: ")
		name, args, _ := strings.Cut(call, " ")
		return agenttest.Calls(agenttest.Call(name, args))
	}
	return agenttest.Reply(fmt.Sprintf("it has %v; it gave %s", r.Tools(), strings.Join(r.Results(), " ")))
}

// An agent that works on a node reads and writes files there, with its usual tool names and under its own rules.
func TestAnAgentWorksOnANode(t *testing.T) {
	t.Parallel()
	w := parleytest.ListenHTTP(parleytest.New(t, callModel, parleytest.WithShell+
		"[agents.main]\nruns_on = \"node:pi\"\n[tools]\ndeny = [\"read_file(secrets/*)\"]\n"))
	w.NeedsSandbox()
	w.Up()
	w.Telegram.Say(1, 1, "call: exec_shell {\"command\":\"touch here\"};;") // so the owner has a chat
	parleytest.Wants(t, w.WaitSaid(1, 1)[0], "not_found")
	n := join(w)
	n.start()
	here(w)
	if _, errs, code := w.Run("nodes", "accept", "pi", "--yes"); code != parleytest.ExitDone {
		t.Fatalf("nodes accept ended with %d: %s", code, errs)
	}
	w.Telegram.Say(2, 2, `call: exec_shell {"command":"mkdir secrets; echo made on the pi | tee secrets/key > made.txt"};; `+
		`call: read_file {"path":"made.txt"};; call: read_file {"path":"./secrets/key"};; call: read_file {"path":"/etc/hostname"};;`)
	said := w.WaitSaid(2, 1)[0]
	parleytest.Wants(t, said, `"content":"made on the pi\n"`, "permission_denied", "invalid_path", "memory_read", "read_file")
	if strings.Contains(said, "pi__") || strings.Contains(said, "spawn") || strings.Contains(said, "code_search") {
		t.Errorf("it said %q", said)
	}
	there := parleytest.FilesWith(t, filepath.Join(n.world.Home, "workspace"), "made on the pi")
	if want := []string{"made.txt", "key"}; len(there) != len(want) || !slices.ContainsFunc(there, func(f string) bool { return filepath.Base(f) == "made.txt" }) {
		t.Errorf("the node has %v, want %v", there, want)
	}
	err := filepath.WalkDir(filepath.Join(w.Home, "workspaces"), func(path string, d os.DirEntry, err error) error {
		if err == nil && (d.Name() == "made.txt" || d.Name() == "here") {
			t.Errorf("the server has %s", path)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Error(err)
	}
	w.Telegram.Say(2, 2, "/undo")
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], "nothing to undo")
	// What the node returns counts as written by strangers, so the next call needs an approval, and the request shows
	// the command.
	w.Telegram.Say(2, 2, `call: exec_shell {"command":"echo rebooting"};;`)
	asked := w.WaitSaid(2, 3)[2]
	parleytest.Wants(t, asked, "echo rebooting", "run on the node pi")
	w.Telegram.Say(1, 1, "/approve "+parleytest.Requested(t, asked))
	parleytest.Wants(t, w.WaitSaid(2, 4)[3], `"stdout":"rebooting\n"`)
}
