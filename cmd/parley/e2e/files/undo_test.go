//go:build linux

package files

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// saidBy matches the words of a person within the frame that the model is shown.
var saidBy = regexp.MustCompile(`(?s)<message [^>]*>\n(.*?)\n</message>`)

// undoModel plays a model that runs a command ("run LINE"), lists changes ("changes"), or otherwise says what it has read
// about undos. It answers with the results of its calls.
func undoModel(r agenttest.Request) agenttest.Response {
	said, result := "", ""
	var undone []string
	for _, m := range r.Messages() {
		if strings.Contains(m.Content, "Somebody has said /undo") {
			undone = append(undone, m.Content)
		}
		switch m.Role {
		case "user":
			if words := saidBy.FindAllStringSubmatch(m.Content, -1); words != nil {
				said, result = words[len(words)-1][1], ""
			}
		case "tool":
			result = m.Content
		}
	}
	what, about, _ := strings.Cut(said, " ")
	switch {
	case result != "":
		return agenttest.Reply(result)
	case what == "run":
		return agenttest.Calls(agenttest.Call("exec_shell", fmt.Sprintf(`{"command":%q}`, about)))
	case what == "changes":
		return agenttest.Calls(agenttest.Call("workspace_changes", `{}`))
	}
	return agenttest.Reply("read: " + strings.Join(undone, " | "))
}

// before and change are shell commands that make files of every kind, and that change them.
const (
	shellBefore = `printf 'a\0b' > binary; echo one > edited; echo two > deleted; : > empty; mkdir -p tree/deep dir; echo x > tree/deep/x; ln -s edited link; echo s > script; echo r > old; echo f > folder`
	shellChange = `printf 'c\0d' > binary; echo more >> edited; rm deleted empty; rm -r tree; chmod 700 dir; ln -sfn other link; chmod 755 script; mv old new; rm folder; mkdir -p folder/in; echo y > folder/in/y; mkdir made; : > made/empty; ln -s /etc/passwd made/out`
)

// contents returns the files of a folder with their bytes and modes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	parleytest.Must(t, filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name)
		if err != nil || rel == "." {
			return err
		}
		if rel == ".agent" {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		all[rel] = info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			all[rel] = "-> " + to
			return err
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(name)
			all[rel] += fmt.Sprintf(" %d %x", len(raw), sha256.Sum256(raw))
			return err
		}
		return nil
	}))
	return all
}

func wantContents(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s there is\n%v\nwant\n%v", what, got, want)
	}
}

func TestUndoInAChat(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, undoModel, parleytest.WithShell)
	w.NeedsSandbox()
	dir := filepath.Join(w.Home, "workspaces", "main", "telegram:2")
	p := w.Serve()
	n := 0
	say := func(text string) string {
		t.Helper()
		n++
		w.Telegram.Say(2, 2, text)
		return w.WaitSaid(2, n)[n-1]
	}
	parleytest.Wants(t, say("/undo"), "nothing to undo")
	say("run " + shellBefore)
	before := contents(t, dir)
	say("run " + shellChange)
	after := contents(t, dir)
	if maps.Equal(before, after) || len(before) < 10 {
		t.Fatalf("the shell has changed nothing: %v", after)
	}
	parleytest.Wants(t, say("changes"), `"number":2`, `"change":"modified"`, `"path":"edited"`, `"path":"made/"`)
	say("run ls; cat edited") // the command changes nothing
	parleytest.Wants(t, say("/undo list"), "• 2, ", "• 1, ", "/undo NUMBER")
	parleytest.Wants(t, say("/undo"), "I've undone what I changed (change 2", "Restored", "edited", "Removed", "made/", "/undo 3 reverses this")
	wantContents(t, "undone", contents(t, dir), before)
	parleytest.Wants(t, say("what happened?"), "read: ", "I've undone what I changed")
	parleytest.Wants(t, say("/undo 3"), "I've undone the undo (change 3")
	wantContents(t, "the undo undone", contents(t, dir), after)
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "edited"), []byte("by hand"), 0o600))
	parleytest.Wants(t, say("/undo"), "edited (it has changed since then)")
	if raw, err := os.ReadFile(filepath.Join(dir, "edited")); err != nil || string(raw) != "by hand" {
		t.Errorf("what was written by hand is %q, %v", raw, err)
	}
	parleytest.Wants(t, say("/undo 99"), "change 99")
	parleytest.Wants(t, say("/undo it please"), "/undo NUMBER")

	p.Stop()
	if _, errs, code := w.Run("forget", "--yes", "--user", "telegram:2"); code != 0 {
		t.Fatalf("forget: %d %s", code, errs)
	}
	if left, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "~undo", "*")); err != nil || len(left) > 0 {
		t.Errorf("after it was forgotten there is %v, %v", left, err)
	}
}

// In a group, only the person who caused changes, or an owner, can undo them.
func TestUndoInAGroup(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, undoModel, parleytest.WithShell)
	w.NeedsSandbox()
	const group = -100
	p := w.Serve()
	w.Telegram.Say(group, 2, "@parleybot run echo x > a")
	w.WaitSaid(group, 1)
	w.Telegram.Say(group, 3, "/undo@parleybot")
	parleytest.Wants(t, w.WaitSaid(group, 2)[1], "Somebody else asked for change 1")
	w.Telegram.Say(group, parleytest.Owner, "/undo@parleybot")
	parleytest.Wants(t, w.WaitSaid(group, 3)[2], "Removed: a")
	p.Stop()
}

// If the process is killed during the turn or during the undo, /undo restores every byte.
func TestUndoAfterAKill(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"undo:walked", "c5:before", "c5", "c6", "c7:published"} {
		t.Run("turn "+at, func(t *testing.T) {
			t.Parallel()
			w, dir, before := undoWorld(t)
			w.Telegram.Say(2, 2, "run "+shellChange)
			w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			p := w.Serve()
			w.WaitSaid(2, 2)
			w.Telegram.Say(2, 2, "/undo")
			w.WaitSaid(2, 3)
			p.Stop()
			wantContents(t, "undone", contents(t, dir), before)
		})
	}
	for _, at := range []string{"undo:begun", "undo:step", "undo:step/9", "undo:restored", "undo:done"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w, dir, before := undoWorld(t)
			p := w.Serve()
			w.Telegram.Say(2, 2, "run "+shellChange)
			w.WaitSaid(2, 2)
			p.Stop()
			w.Telegram.Say(2, 2, "/undo")
			w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			p = w.Serve()
			parleytest.Wants(t, w.WaitSaid(2, 3)[2], "I've undone what I changed", "edited", "/undo 3")
			p.Stop()
			wantContents(t, "undone", contents(t, dir), before)
		})
	}
}

// undoWorld returns a world with a chat whose folder already has files.
func undoWorld(t *testing.T) (w *parleytest.World, dir string, before map[string]string) {
	t.Helper()
	w = parleytest.New(t, undoModel, parleytest.WithShell)
	w.NeedsSandbox()
	dir = filepath.Join(w.Home, "workspaces", "main", "telegram:2")
	p := w.Serve()
	w.Telegram.Say(2, 2, "run "+shellBefore)
	w.WaitSaid(2, 1)
	p.Stop()
	return w, dir, contents(t, dir)
}

// waitingModel plays a model that makes a file, asks the person a question, and then makes another file.
func waitingModel(r agenttest.Request) agenttest.Response {
	steps := []agenttest.Response{
		agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"first","content":"1"}`}),
		agenttest.Calls(agenttest.ToolCall{Name: "ask_user", Args: `{"question":"go on?"}`}),
		agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"second","content":"2"}`}),
	}
	n := 0
	for _, m := range r.Messages() {
		if m.Role == "tool" {
			n++
		}
	}
	if n < len(steps) {
		return steps[n]
	}
	return agenttest.Reply("both are there")
}

// A turn that waits for people cannot be undone. Files that people change while it waits do not belong to its changes.
func TestUndoOfATurnThatWaits(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, waitingModel, "")
	dir := filepath.Join(w.Home, "workspaces", "main", "telegram:2")
	p := w.Serve()
	w.Telegram.Say(2, 2, "make them")
	parleytest.Wants(t, w.WaitSaid(2, 1)[0], "go on?")
	w.Telegram.Say(2, 2, "/undo")
	parleytest.Wants(t, w.WaitSaid(2, 2)[1], "I'm waiting for an answer")
	for name, content := range map[string]string{"by hand": "3", "first": "by hand"} {
		parleytest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	w.Telegram.Say(2, 2, "yes")
	parleytest.Wants(t, w.WaitSaid(2, 3)[2], "both are there")
	w.Telegram.Say(2, 2, "/undo")
	parleytest.Wants(t, w.WaitSaid(2, 4)[3], "Removed: second", "Left as is: first (it has changed since then)")
	p.Kill() // the timer of the question stays on the bus
	for name, there := range map[string]bool{"by hand": true, "first": true, "second": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// /undo also works in a directory of the user's own, and leaves nothing else there.
func TestUndoInOnesOwnDirectory(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, undoModel, parleytest.WithShell)
	w.NeedsSandbox()
	dir := t.TempDir()
	for _, name := range []string{"edited", "deleted", ".git/HEAD", ".git/index"} {
		parleytest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		parleytest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o640))
	}
	before := contents(t, dir)
	say := func(text string) string {
		t.Helper()
		out, errs, code := w.Run("chat", "--workspace", dir, "-m", text)
		if code != 0 {
			t.Fatalf("chat -m %q: %d %s", text, code, errs)
		}
		return out
	}
	say("run echo x >> edited; rm deleted; mkdir new; echo 1 > .git/index")
	if maps.Equal(contents(t, dir), before) {
		t.Fatal("the shell has changed nothing")
	}
	parleytest.Wants(t, say("/undo"), "I've undone what I changed")
	wantContents(t, "undone", contents(t, dir), before)
}
