// Package undo lets people undo the changes that turns have made in a workspace, and list them.
//
// undo.go records in a workspace's history when a turn begins to change it and when it has ended, and carries
// out /undo; texts.go words the answers, and forget.go removes what is erased or too old.
package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agent"
	"parley/sessions/snapshots"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/changes"
	"parley/tools/guard"
	"parley/tools/plainjson"
)

// Config holds the parts that a History works with.
type Config struct {
	Store *snapshots.Store
	// Open opens the directory that a session works in, and reports whether it is a person's own directory
	// rather than one that Parley made.
	Open func(session string) (dir *workspace.Dir, own bool, err error)
	// Off reports whether the operator wants no history kept.
	Off func() bool
	Log *slog.Logger
}

// A History records what turns change in workspaces, and undoes it on request. It implements agent.History for
// workers.
type History struct{ cfg Config }

// New makes a History.
func New(cfg Config) *History { return &History{cfg} }

func (d *History) openPlace(session string) (*workspace.Dir, snapshots.Place, error) {
	dir, own, err := d.cfg.Open(session)
	if err != nil {
		return nil, snapshots.Place{}, err
	}
	return dir, snapshots.Place{Session: session, Dir: dir.Path(), IsOwnDir: own}, nil
}

// Begin implements agent.History: it records the workspace's state before the turn's first call of a tool that may
// change files, unless the operator wants no history kept.
func (d *History) Begin(ctx context.Context, call tools.Call) error {
	if d.cfg.Off() || !call.Touch().MayWrite() {
		return nil
	}
	dir, place, err := d.openPlace(call.Session)
	if err != nil {
		return err
	}
	marks, err := plainjson.Marshal(guard.ReadMarks(dir))
	if err != nil {
		return err
	}
	return d.cfg.Store.Begin(ctx, place, snapshots.TurnInfo{Turn: call.Turn, Person: call.Person, Note: marks})
}

// End implements agent.History: it records what a turn has changed.
func (d *History) End(ctx context.Context, session, turn string) error {
	_, place, err := d.openPlace(session)
	if err != nil {
		return err
	}
	return d.cfg.Store.End(ctx, place, turn)
}

// Undo implements agent.History: it carries out a person's /undo command, and returns the answer.
func (d *History) Undo(ctx context.Context, w agent.UndoCommand) (string, error) {
	s := replyTexts{prefix: w.Prefix}
	word := strings.ToLower(strings.TrimSpace(w.Args))
	n, err := strconv.Atoi(strings.TrimPrefix(word, "#"))
	switch {
	case d.cfg.Off():
		return textNotKept, nil
	case word == "list":
		return d.list(w, s)
	case word != "" && (err != nil || n <= 0):
		return s.usageText(), nil
	}
	dir, place, err := d.openPlace(w.Session)
	if err != nil {
		return "", err
	}
	if why, err := d.refusal(place, w, n, s); why != "" || err != nil {
		return why, err
	}
	made, undone, err := d.cfg.Store.Undo(ctx, place, snapshots.UndoRequest{
		ID: w.ID, Person: w.Person, Note: d.marksNow(dir), N: n, CheckLease: w.CheckLease,
		MayUndo: func(r snapshots.Record) bool { return w.MayUndoFor(r.Person) },
	})
	switch {
	case errors.Is(err, snapshots.ErrNone):
		return s.nothingText(n), nil
	case errors.Is(err, snapshots.ErrNotTheirs):
		return s.notTheirsText(undone), nil
	case errors.Is(err, snapshots.ErrTooMany):
		return textTooManyFiles, nil
	case err != nil:
		return "", err
	}
	if err := d.restoreMarks(dir, undone); err != nil {
		return "", err
	}
	return s.undoneText(made, undone), nil
}

// refusal returns why the change with the number n can't be undone now, in words for the person; "" if it can.
// If n is 0, it looks at the newest change that hasn't been undone.
func (d *History) refusal(place snapshots.Place, w agent.UndoCommand, n int, s replyTexts) (string, error) {
	if w.Jobs > 0 {
		return s.jobsText(w.Jobs), nil
	}
	all, err := d.cfg.Store.Records(place)
	if err != nil {
		return "", err
	}
	for _, r := range slices.Backward(all) {
		if r.N != n && (n != 0 || r.UndoneRecord != 0 || snapshots.IsUndone(all, r.N)) {
			continue
		}
		if slices.Contains(w.Waiting, r.Turn) {
			return s.waitingText(), nil
		}
		break
	}
	return "", nil
}

func (d *History) marksNow(dir *workspace.Dir) json.RawMessage {
	raw, err := plainjson.Marshal(guard.ReadMarks(dir))
	if err != nil { // texts always marshal
		panic(err)
	}
	return raw
}

// restoreMarks restores the marks of files that were marked as possibly written by strangers when the undone
// turn began, because their content may be back. It also has the directory's size measured again.
func (d *History) restoreMarks(dir *workspace.Dir, undone snapshots.Record) error {
	var marks guard.Marks
	if len(undone.Note) > 0 {
		if err := json.Unmarshal(undone.Note, &marks); err != nil {
			marks = guard.Marks{All: true, Files: guard.PromptedFiles()}
		}
	}
	if err := guard.ChangeMarks(dir, marks.All, marks.Files, nil); err != nil {
		return fmt.Errorf("mark what strangers may have written: %w", err)
	}
	return dir.MarkChanged()
}

// list returns the answer that lists what can be undone.
func (d *History) list(w agent.UndoCommand, s replyTexts) (string, error) {
	_, place, err := d.openPlace(w.Session)
	if err != nil {
		return "", err
	}
	all, err := d.cfg.Store.Records(place)
	if err != nil {
		return "", err
	}
	return s.listText(all, time.Now()), nil
}

// Changes returns what turns have changed in a session's workspace, newest first, for the tool
// workspace_changes.
func (d *History) Changes(ctx context.Context, call tools.Call) ([]changes.Turn, error) {
	_, place, err := d.openPlace(call.Session)
	if err != nil {
		return nil, err
	}
	all, err := d.cfg.Store.Records(place)
	if err != nil {
		return nil, err
	}
	var listed []changes.Turn
	for _, r := range slices.Backward(all) {
		made := r.Changes
		if r.OpenTree != "" && r.Turn == call.Turn {
			if made, err = d.cfg.Store.ChangesSoFar(ctx, place, r); err != nil {
				return nil, err
			}
		}
		t := changes.Turn{
			Number: r.N, At: r.At.UTC().Format(time.RFC3339), Current: r.Turn == call.Turn, Undone: snapshots.IsUndone(all, r.N), Undoes: r.UndoneRecord, Problem: r.Problem,
		}
		for _, c := range made {
			t.Files = append(t.Files, changes.File{Path: displayPath(c.Path, c.IsDir()), Change: c.KindWord()})
		}
		listed = append(listed, t)
	}
	return listed, nil
}
