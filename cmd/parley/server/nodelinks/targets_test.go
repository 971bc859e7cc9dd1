package nodelinks_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/tools"
)

// A device that has got a target's name doesn't run the calls meant for the target.
func TestADeviceWithTheNameOfATarget(t *testing.T) {
	settings := &config.Config{Agents: map[string]config.Agent{"main": {}}}
	s := newStage(t, settings)
	s.join("ssh-a-b").offer(nil, "exec_shell", "read_file")
	s.accept("ssh-a-b")
	settings.Agents["main"] = config.Agent{RunsOn: "ssh://a@b"}
	all := tools.NewSet(ownTool("read_file", tools.FileRead), ownTool("exec_shell", tools.Shell), ownTool("recall", ""))
	if got, want := names(s.InPlace(all, "main")), []string{"recall"}; !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	settings.Agents["main"] = config.Agent{RunsOn: "node:ssh-a-b"}
	if got, want := names(s.InPlace(all, "main")), []string{"exec_shell", "read_file", "recall"}; !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// No device can join under the name of a target, and a target in the settings can't be removed.
func TestTheNameOfATarget(t *testing.T) {
	s := newStage(t, &config.Config{Agents: map[string]config.Agent{"main": {RunsOn: "ssh://a@b"}}})
	code, _, err := s.Invite(t.Context())
	must(t, err)
	if status, answer := s.ask("POST", "/v1/nodes/join", joinBody(t, code, "ssh-a-b", make([]byte, 32))); status != http.StatusConflict || !strings.Contains(answer, "name_taken") {
		t.Errorf("join: %d %s", status, answer)
	}
	if status, answer := s.ask("POST", "/v1/nodes/ssh-a-b/revoke", ""); status != http.StatusConflict || !strings.Contains(answer, "ssh://a@b") {
		t.Errorf("revoke: %d %s", status, answer)
	}
}

// The part connects to each target in the settings with one process, and ends the process when the settings no longer
// name the target.
func TestTargetsFollowTheSettings(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\necho $$ > %[1]s/$2\ncat > /dev/null\nrm %[1]s/$2\n", dir)
	must(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	s := newStage(t, &config.Config{Agents: map[string]config.Agent{"main": {RunsOn: "ssh://a@one"}, "other": {RunsOn: "ssh://a@one"}, "here": {}}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.RunTargets(ctx) }()
	started := func(host string) bool {
		_, err := os.Stat(filepath.Join(dir, host))
		return err == nil
	}
	s.until("ssh to one", func() bool { return started("one") })
	next := &config.Config{Agents: map[string]config.Agent{"main": {RunsOn: "ssh://a@two"}, "here": {}}}
	apply, err := s.Reload(next)
	must(t, err)
	apply() // before they become the current settings
	s.until("ssh to two instead", func() bool { return started("two") && !started("one") })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if started("two") {
		t.Error("an ssh runs on after the end")
	}
}

// until waits until a condition is true.
func (s *stage) until(what string, is func() bool) {
	s.t.Helper()
	for late := time.Now().Add(20 * time.Second); !is(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(late) {
			s.t.Fatalf("in vain: %s", what)
		}
	}
}
