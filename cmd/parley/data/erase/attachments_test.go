package erase_test

import (
	"errors"
	"io/fs"
	"testing"

	"parley/cmd/parley/hometest"
	"parley/sessions"
)

// When a person is erased from a shared conversation, the files that they sent are removed, and so are the files of
// their turns' calls.
func TestFilesThatAPersonHasSentGoWithThem(t *testing.T) {
	h := hometest.Open(t, t.TempDir())
	const key = "main:telegram:-100"
	log, err := h.Store.Open(t.Context(), key, 1)
	if err != nil {
		t.Fatal(err)
	}
	var entries []sessions.Entry
	add := func(turn, person string, kind sessions.Kind, data any) {
		e, err := sessions.NewEntry(turn, kind, data)
		if err != nil {
			t.Fatal(err)
		}
		e.Person = person
		if kind == sessions.KindUser {
			e.Cause = turn
		}
		entries = append(entries, e)
	}
	for turn, person := range []string{anna, "telegram:7"} {
		id := string(rune('a' + turn))
		add(id, person, sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte("{}")})
		add(id, person, sessions.KindUser, sessions.User{Text: "look"})
		add(id, person, sessions.KindFetched, sessions.Fetched{Path: "attachments/" + id + ".png", Picture: &sessions.Picture{View: ".agent/pictures/" + id + ".png"}})
		add(id, "", sessions.KindToolStarted, sessions.ToolStarted{Attempt: 1})
		entries[len(entries)-1].Call = id + "-1"
		add(id, "", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCompleted})
	}
	if err := log.Append(t.Context(), 1, entries...); err != nil {
		t.Fatal(err)
	}
	dir, err := h.Workspaces.Open(key)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"attachments/a.png", ".agent/pictures/a.png", ".agent/canvas/a-1-sales.html", ".agent/canvas/a-1-sales.png", ".agent/out/a-1.json", ".agent/mcp/a-1-2.pdf",
		"attachments/b.png", ".agent/pictures/b.png", ".agent/canvas/b-1-sales.html", ".agent/canvas/a-10-sales.html", ".agent/canvas/a-1.txt", ".agent/out/b-1.json"}
	const hers = 6
	for _, name := range files {
		if err := dir.Write(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range []int{2, 0} { // the second time nothing is left
		r, err := eraser(h).Person(t.Context(), anna)
		if err != nil || r.Attachments != want || r.OldFiles != 2*want {
			t.Errorf("time %d: %+v, %v", n+1, r, err)
		}
	}
	for i, name := range files {
		if _, err := dir.Stat(name); errors.Is(err, fs.ErrNotExist) != (i < hers) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
