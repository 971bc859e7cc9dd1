package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

// Nobody waits for a sandbox that is still being tried out but those who need it: the bot
// serves meanwhile, and what is said to it then finds the tools that run commands.
func TestItServesWhileTheSandboxIsTriedOut(t *testing.T) {
	t.Parallel()
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("NOT TESTED: there is no bubblewrap here")
	}
	w := parleytest.New(t, commander, "[agents.main]\ncapabilities = [\"shell\"]\n")
	needsSandbox(t, w)
	dir := t.TempDir()
	tried, goOn := filepath.Join(dir, "tried"), filepath.Join(dir, "go-on")
	slow := fmt.Sprintf("#!/bin/sh\n: >%q\nwhile [ ! -e %q ]; do sleep 0.05; done\nexec %q \"$@\"\n", tried, goOn, bwrap)
	must(t, os.WriteFile(filepath.Join(dir, "bwrap"), []byte(slow), 0o755))

	w.Serve("PATH=" + dir + ":" + os.Getenv("PATH"))
	parleytest.WaitFor(t, "the sandbox to be tried out", func() bool { _, err := os.Stat(tried); return err == nil })
	parleytest.WaitFor(t, "it to serve", func() bool { return w.Telegram.Calls("getUpdates") > 0 })
	w.Telegram.Say(2, 2, shellCall("echo $((6*7))"))
	must(t, os.WriteFile(goOn, nil, 0o600))
	if got := w.Said(2, 1)[0]; !strings.Contains(got, `"stdout":"42\n"`) {
		t.Errorf("it was answered %s", got)
	}
}
