package erase_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/files/copies"
	"parley/cmd/parley/data/erase"
	"parley/cmd/parley/hometest"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// oneTurn returns the entries of a turn that began at a time. Its message came with a file, which the agent was shown
// as a picture, and a file may have the whole result of its call.
func oneTurn(t *testing.T, turn string, at time.Time, file, view string, over bool) []sessions.Entry {
	t.Helper()
	var all []sessions.Entry
	add := func(kind sessions.Kind, cause, call string, data any) {
		e, err := sessions.NewEntry(turn, kind, data)
		if err != nil {
			t.Fatal(err)
		}
		e.At, e.Cause, e.Call, e.Person = at, cause, call, anna
		all = append(all, e)
	}
	add(sessions.KindTurnStarted, "", "", sessions.TurnStarted{Route: []byte("{}")})
	add(sessions.KindUser, turn, "", sessions.User{Text: "look"})
	add(sessions.KindFetched, "", "", sessions.Fetched{Message: turn, Path: file, Picture: &sessions.Picture{Path: file, View: view}})
	add(sessions.KindToolUse, "", turn+"-call", sessions.ToolUse{Name: "read_file", Args: []byte("{}")})
	add(sessions.KindToolResult, "", turn+"-call", sessions.ToolResult{Content: []byte("{}")})
	if over {
		add(sessions.KindTurnDone, "", "", sessions.TurnDone{State: sessions.TurnCompleted})
	}
	return all
}

// When old turns of a living conversation are erased, their files are removed and no others, even if the process dies
// right after it has erased the turns.
func TestOldFilesGoWithTheirTurns(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testOldFiles(t, nil) })
	t.Run("postgres", func(t *testing.T) {
		store, err := sqlstore.Open(t.Context(), sqldbtest.New(t))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		testOldFiles(t, store)
	})
}

func testOldFiles(t *testing.T, store *sqlstore.Store) {
	h := hometest.Open(t, t.TempDir())
	if store == nil {
		store = h.Store
	}
	now := time.Now()
	long, before := now.AddDate(0, 0, -40), now.AddDate(0, 0, -30)
	const (
		shared  = ".agent/pictures/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.png" // named by two turns
		oldView = ".agent/pictures/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.png"
		open    = ".agent/pictures/cccccccccccccccccccccccccccccccc.jpg"
		waiting = ".agent/pictures/dddddddddddddddddddddddddddddddd.jpg" // waits to be named by a turn
	)
	key := hometest.Key(t, "42")
	log, err := store.Open(t.Context(), key, 1)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(1)
	for _, turn := range [][]sessions.Entry{
		oneTurn(t, "old", long, "attachments/3-old.png", oldView, true),
		oneTurn(t, "older", long, "attachments/9-older.png", shared, true),
		oneTurn(t, "new", now, "attachments/15-new.png", shared, true),
		oneTurn(t, "open", long, "attachments/21-open.png", open, false),
	} {
		if err := log.Append(t.Context(), at, turn...); err != nil {
			t.Fatal(err)
		}
		at += int64(len(turn))
	}
	dir, err := h.Workspaces.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	goes := map[string]bool{
		"attachments/3-old.png": true, "attachments/9-older.png": true, "attachments/15-new.png": false, "attachments/21-open.png": false,
		oldView: true, shared: false, open: false, waiting: false,
		".agent/out/old-call.json": true, ".agent/out/new-call.json": false, ".agent/out/open-call.json": false,
		".agent/mcp/old-call-1.png": true, ".agent/mcp/new-call-1.png": false,
		"notes.txt": false, "attachments/notes.txt": false,
	}
	for name := range goes {
		if err := dir.Write(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if name == waiting {
			continue // written just now
		}
		if err := os.Chtimes(filepath.Join(dir.Path(), name), time.Time{}, long); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config(h)
	cfg.Store = cutStore{store, func() error { return errCut }}
	if _, err := erase.New(cfg).EraseBefore(t.Context(), before); !errors.Is(err, errCut) {
		t.Fatalf("cut off: %v", err)
	}
	cfg.Store = store
	r, err := erase.New(cfg).EraseBefore(t.Context(), before)
	if err != nil || r.OldFiles != 5 || r.Empty() || !strings.Contains(r.String(), "5  files of erased turns in conversations that continue") {
		t.Errorf("%v\n%s", err, r.String())
	}
	for name, gone := range goes {
		if _, err := dir.Stat(name); errors.Is(err, fs.ErrNotExist) != gone {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err = erase.New(cfg).EraseBefore(t.Context(), before); err != nil || r.OldFiles != 0 {
		t.Errorf("once more: %+v, %v", r, err)
	}
}

// An old dead letter that is dropped releases its files. Messages that are still to be sent keep theirs.
func TestOldDeadLettersLetGoOfTheirFiles(t *testing.T) {
	h := hometest.Open(t, t.TempDir())
	files := copies.Files{Store: h.Outgoing}
	session := hometest.Key(t, "42")
	dir, err := h.Workspaces.Open(session)
	if err == nil {
		err = dir.Write("a", []byte("x"))
	}
	if err != nil {
		t.Fatal(err)
	}
	publish := func(id string) bus.FileRef {
		t.Helper()
		refs, err := files.Keep(t.Context(), copies.Messages{Session: session, Call: id, IDs: []string{id}, MaxBytes: 100}, dir, []string{"a"})
		if err == nil {
			err = bus.PublishOutbound(t.Context(), h.Bus, bus.Outbound{
				ID: id, To: bus.Address{Channel: hometest.Channel, Chat: id}, Text: "x", Session: session, Turn: id, Files: refs, At: time.Now(),
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		return refs[0]
	}
	dead := publish("dead")
	bury(t, h, bus.OutboundTopic(hometest.Channel))
	waits := publish("waits")
	if _, err := eraser(h).EraseBefore(context.Background(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if d := h.Depth(bus.OutboundTopic(hometest.Channel)); d.Dead != 0 || d.Waiting != 1 {
		t.Errorf("the bus has %+v", d)
	}
	if left, err := h.Outgoing.References(t.Context(), ""); err != nil || len(left) != 1 || left[0].Message != "waits" {
		t.Errorf("files are kept for %+v, %v", left, err)
	}
	if _, err := files.Read(dead); err == nil {
		t.Error("the file of a dead letter is left")
	}
	if _, err := files.Read(waits); err != nil {
		t.Errorf("the file of what waits: %v", err)
	}
}
