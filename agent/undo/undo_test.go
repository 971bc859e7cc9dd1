package undo_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/undo"
	"parley/bus/sqlitebus"
	"parley/channels/files/copies"
	"parley/sessions/outgoing"
	"parley/sessions/snapshots"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/guard"
)

const session = "main:telegram:42"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A rig is a session's workspace beside what is kept of its changes.
type rig struct {
	*testing.T
	root    string
	all     *workspace.Workspaces
	store   *snapshots.Store
	dir     *workspace.Dir
	history *undo.History
	off     bool
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, root: t.TempDir()}
	var err error
	r.all, err = workspace.New(workspace.Config{Root: r.root})
	must(t, err)
	t.Cleanup(func() { r.all.Close() })
	r.store, err = snapshots.Open(snapshots.Config{
		Root: r.root, MaxBytes: 1 << 20, MaxTurns: 20, MaxAge: 30 * 24 * time.Hour, IsExcluded: workspace.IsNotes, TemporaryName: workspace.TemporaryName,
	})
	must(t, err)
	t.Cleanup(func() { r.store.Close() })
	r.dir, err = r.all.Open(session)
	must(t, err)
	r.history = undo.New(undo.Config{
		Store: r.store, Log: slog.New(slog.DiscardHandler), Off: func() bool { return r.off },
		Open: func(session string) (*workspace.Dir, bool, error) {
			dir, err := r.all.Open(session)
			return dir, false, err
		},
	})
	return r
}

func (r *rig) turn(id string, change func()) {
	r.Helper()
	must(r.T, r.history.Begin(r.Context(), tools.Call{Name: "write_file", Session: session, Turn: id, Person: "telegram:42"}))
	change()
	must(r.T, r.history.End(r.Context(), session, id))
}

func (r *rig) write(name, content string) {
	r.Helper()
	must(r.T, r.dir.Write(name, []byte(content)))
}

func (r *rig) say(args string, change func(*agent.UndoCommand)) string {
	r.Helper()
	u := agent.UndoCommand{Session: session, ID: time.Now().String(), Person: "telegram:42", Args: args, Prefix: "!", MayUndoFor: func(string) bool { return true }}
	if change != nil {
		change(&u)
	}
	reply, err := r.history.Undo(r.Context(), u)
	must(r.T, err)
	return reply
}

func (r *rig) wants(reply string, words ...string) {
	r.Helper()
	for _, word := range words {
		if !strings.Contains(reply, word) {
			r.Errorf("it said %q, which lacks %q", reply, word)
		}
	}
}

func (r *rig) has(name, want string) {
	r.Helper()
	raw, err := fs.ReadFile(r.dir, name)
	if want == "" && !errors.Is(err, fs.ErrNotExist) || want != "" && string(raw) != want {
		r.Errorf("%s is %q, %v, want %q", name, raw, err, want)
	}
}

func TestWhatIsSaid(t *testing.T) {
	r := newRig(t)
	r.wants(r.say("", nil), "nothing to undo")
	r.wants(r.say("list", nil), "nothing to undo")
	r.turn("t1", func() { r.write("a", "1"); r.write("evil `x`\n# name", "1") })
	r.turn("t2", func() { r.write("a", "2") })
	r.wants(r.say("list", nil), "**2**", "`a` modified", "**1**", "`!undo NUMBER`")
	r.wants(r.say("7", nil), "change 7", "`!undo list`")
	for _, odd := range []string{"-1", "0", "everything", "1 2"} {
		r.wants(r.say(odd, nil), "`!undo NUMBER`")
	}
	r.wants(r.say("", func(u *agent.UndoCommand) { u.MayUndoFor = func(person string) bool { return person != "telegram:42" } }), "Somebody else", "change 2")
	r.wants(r.say("", func(u *agent.UndoCommand) { u.Jobs = 2 }), "2 jobs are running in the background", "`!stop`")
	r.wants(r.say("", func(u *agent.UndoCommand) { u.Waiting = []string{"t2"} }), "I'm waiting for an answer", "`!stop`")
	r.has("a", "2")
	// A turn that waits keeps no other from being undone.
	reply := r.say("#1", func(u *agent.UndoCommand) { u.Waiting = []string{"t2"} })
	r.wants(reply, "I've undone what I changed (change 1", "Removed", "Left as is: `a` (it has changed since then)", "`!undo 3` reverses this")
	if strings.Contains(reply, "`x`") || strings.Contains(reply, "\n#") {
		t.Errorf("a name ends its quotation: %q", reply)
	}
	r.wants(r.say("", nil), "I've undone what I changed (change 2", "Restored: `a`")
	r.has("a", "1")
	r.wants(r.say("", nil), "nothing to undo")
	r.wants(r.say("1", nil), "Removed: `a`") // what stood in the way is gone
	r.has("a", "")
	r.off = true
	r.wants(r.say("", nil), "undo_turns")
	r.turn("t9", func() { r.write("b", "1") })
	r.off = false
	if list := r.say("list", nil); strings.Contains(list, "`b`") {
		t.Errorf("while it was off, this was kept: %q", list)
	}
}

func TestLongListsAreCut(t *testing.T) {
	r := newRig(t)
	r.turn("t1", func() {
		for _, c := range "abcdefghijklmnopqrst" {
			r.write(string(c), "1")
		}
	})
	r.wants(r.say("list", nil), "17 more")
	r.wants(r.say("", nil), "`l` and 8 more")
	r.has("t", "")
}

// What was marked as written by strangers is marked when it is back.
func TestMarksComeBack(t *testing.T) {
	r := newRig(t)
	r.write("a", "of a stranger")
	must(t, guard.ChangeMarks(r.dir, false, []string{"a"}, nil))
	r.turn("t1", func() {
		r.write("a", "trusted")
		must(t, guard.ChangeMarks(r.dir, false, []string{"b"}, []string{"a"}))
	})
	r.say("", nil)
	r.has("a", "of a stranger")
	if marks := guard.ReadMarks(r.dir); !marks.Has("a") || !marks.Has("b") {
		t.Errorf("marked are %+v", marks)
	}
}

// A tool that acts elsewhere has nothing noted; another does once in a turn.
func TestOnlyWhatMayChangeFilesIsNoted(t *testing.T) {
	r := newRig(t)
	must(t, r.history.Begin(t.Context(), tools.Call{Session: session, Turn: "t1", Touches: tools.TouchesNothing()}))
	if _, err := os.Stat(filepath.Join(r.root, snapshots.Folder)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a call that writes nothing has files noted: %v", err)
	}
	r.turn("t1", func() { r.write("a", "1") })
	call := tools.Call{Name: "workspace_changes", Session: session, Turn: "t2"}
	must(t, r.history.Begin(t.Context(), tools.Call{Name: "server__tool", Session: session, Turn: "t2"}))
	r.write("a", "22")
	r.write("dir/b", "1")
	all, err := r.history.Changes(t.Context(), call)
	must(t, err)
	var seen []string
	for _, turn := range all {
		for _, f := range turn.Files {
			seen = append(seen, f.Path+" "+f.Change)
		}
	}
	if len(all) != 2 || !all[0].Current || all[1].Current || !slices.Equal(seen, []string{"a modified", "dir/ created", "dir/b created", "a created"}) {
		t.Errorf("listed are %+v", all)
	}
}

// No copy stays of what is forgotten, whatever takes it away.
func TestForgetting(t *testing.T) {
	ways := map[string]func(ctx context.Context, d undo.Dirs, f undo.Files) error{
		"a session": func(ctx context.Context, d undo.Dirs, _ undo.Files) error {
			_, err := d.Remove(ctx, session)
			return err
		},
		"a file": func(ctx context.Context, d undo.Dirs, _ undo.Files) error {
			_, err := d.Discard(ctx, session, []string{"a"})
			return err
		},
		"an old file": func(ctx context.Context, d undo.Dirs, _ undo.Files) error {
			_, err := d.DiscardOld(ctx, session, []string{"a"}, time.Now())
			return err
		},
		"what is to be sent": func(ctx context.Context, _ undo.Dirs, f undo.Files) error {
			_, err := f.Remove(ctx, session)
			return err
		},
		"a person among others": func(ctx context.Context, _ undo.Dirs, f undo.Files) error { return f.Forget(ctx, session, nil) },
		"another session": func(ctx context.Context, d undo.Dirs, _ undo.Files) error {
			_, err := d.Remove(ctx, "main:telegram:7")
			return err
		},
	}
	for what, forget := range ways {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.write("a", "secret")
			r.turn("t1", func() { r.write("a", "x") })
			must(t, guard.ChangeMarks(r.dir, false, []string{"a", "b"}, nil))
			sent, err := outgoing.Open(r.root, 1<<20)
			must(t, err)
			defer sent.Close()
			must(t, forget(t.Context(), undo.Dirs{Workspaces: r.all, Store: r.store}, undo.Files{Sent: copies.Files{Store: sent}, Store: r.store}))
			left, err := filepath.Glob(filepath.Join(r.root, snapshots.Folder, "*"))
			if gone := what != "another session"; err != nil || (len(left) == 0) != gone {
				t.Errorf("left: %v, %v", left, err)
			}
			if removed := strings.HasSuffix(what, " file"); guard.ReadMarks(r.dir).Has("a") == removed && what != "a session" || removed && !guard.ReadMarks(r.dir).Has("b") {
				t.Errorf("marked are %v", guard.ReadMarks(r.dir).Files)
			}
		})
	}
}

// What nobody has written to for as long as it is kept goes by itself.
func TestRunSweeps(t *testing.T) {
	r := newRig(t)
	r.turn("t1", func() { r.write("a", "x") })
	long := time.Now().AddDate(0, 0, -31)
	must(t, filepath.WalkDir(filepath.Join(r.root, snapshots.Folder), func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(name, long, long))
	}))
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db")})
	must(t, err)
	t.Cleanup(func() { b.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.history.Run(ctx, b) }()
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if left, err := filepath.Glob(filepath.Join(r.root, snapshots.Folder, "*", "*")); err == nil && len(left) == 0 {
			break
		}
		select {
		case <-deadline:
			t.Fatal("it is not swept")
		default:
		}
	}
	cancel()
	must(t, <-ended)
}
