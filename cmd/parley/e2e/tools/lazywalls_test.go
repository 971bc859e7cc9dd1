package tools

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// The bot serves while it still tries out the sandbox. Only turns that need the sandbox wait for it, and then have the
// tools that run commands.
func TestItServesWhileTheSandboxIsTriedOut(t *testing.T) {
	t.Parallel()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("NOT TESTED: there is no bubblewrap here")
	}
	w := parleytest.New(t, commander, "[agents.main]\ncapabilities = [\"shell\"]\n")
	w.NeedsSandbox()
	dir := t.TempDir()
	parleytest.Must(t, os.Chmod(dir, 0o777)) // for the user that root's commands run as
	parleytest.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
	tried, goOn := filepath.Join(dir, "tried"), filepath.Join(dir, "go-on")
	slow := fmt.Sprintf("#!/bin/sh\n: >%q\nwhile [ ! -e %q ]; do sleep 0.05; done\nexec %q \"$@\"\n", tried, goOn, bwrap)
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "bwrap"), []byte(slow), 0o755))
	parleytest.Must(t, os.Chmod(filepath.Join(dir, "bwrap"), 0o755))

	w.Serve("PATH=" + dir + ":" + os.Getenv("PATH"))
	parleytest.WaitFor(t, "the sandbox to be tried out", func() bool { _, err := os.Stat(tried); return err == nil })
	parleytest.WaitFor(t, "it to serve", func() bool { return w.Telegram.Calls("getMyCommands") > 0 }) // the bot calls this method once it receives messages
	w.Telegram.Say(2, 2, shellCall("echo $((6*7))"))
	parleytest.Must(t, os.WriteFile(goOn, nil, 0o600))
	if got := w.WaitSaid(2, 1)[0]; !strings.Contains(got, `"stdout":"42\n"`) {
		t.Errorf("it was answered %s", got)
	}
}

// Each command of an agent runs under a supervisor, and some have a second process of this program inside the sandbox.
// These processes start without initializing the libraries that only the server needs.
func TestASupervisorWaitsForNoLibrary(t *testing.T) {
	t.Parallel()
	heavy := []string{
		"codeberg.org/readeck/go-readability", "github.com/bwmarrin/discordgo", "github.com/prometheus/client_golang/prometheus",
		"github.com/santhosh-tekuri/jsonschema/v6", "github.com/yuin/goldmark/extension", "net", "net/http", "regexp",
	}
	program, err := parleytest.Binary()
	parleytest.Must(t, err)
	initialised := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = []string{"GODEBUG=inittrace=1"}
		said, _ := cmd.CombinedOutput() // the command fails, because it was not told what to run
		return string(said)
	}
	for _, args := range [][]string{{"sandbox-supervisor"}, {"sandbox-enter", "9"}} {
		trace := initialised(args...)
		if !strings.Contains(trace, "init golang.org/x/sys/unix @") {
			t.Errorf("%q: nothing is known of what it initialised: %s", args, trace)
		}
		for _, name := range heavy {
			if strings.Contains(trace, "init "+name+" @") {
				t.Errorf("%q has waited for %s", args, name)
			}
		}
	}
	trace := initialised("version")
	for _, name := range heavy {
		if !strings.Contains(trace, "init "+name+" @") {
			t.Errorf("the program has no package %s anymore: it need not be named here", name)
		}
	}
}
