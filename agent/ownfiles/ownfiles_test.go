package ownfiles_test

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"parley/agent/ownfiles"
	"parley/sessions"
)

func entry(t *testing.T, n int64, kind sessions.Kind, call string, data any) sessions.Entry {
	t.Helper()
	e, err := sessions.NewEntry("turn", kind, data)
	if err != nil {
		t.Fatal(err)
	}
	e.N, e.Call = n, call
	return e
}

func entries(all []sessions.Entry, end error) iter.Seq2[sessions.Entry, error] {
	return func(yield func(sessions.Entry, error) bool) {
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
		if end != nil {
			yield(sessions.Entry{}, end)
		}
	}
}

const shown = "0123456789abcdef0123456789abcdef"

// Only files that Parley itself has put there go, and only those that no entry is about.
func TestUnnamedFiles(t *testing.T) {
	view := ownfiles.Pictures + "/" + shown + ".png"
	other := ownfiles.Pictures + "/f" + shown[1:] + ".jpg"
	log := []sessions.Entry{
		entry(t, 7, sessions.KindAttached, "", sessions.Attached{Message: "m", Name: "waits.txt"}),
		entry(t, 9, sessions.KindFetched, "", sessions.Fetched{Path: "attachments/8-fetched.png", Picture: &sessions.Picture{Path: "attachments/8-fetched.png", View: view}}),
		entry(t, 10, sessions.KindFetched, "", sessions.Fetched{Problem: "gone"}),
		entry(t, 11, sessions.KindPicture, "c1", sessions.Picture{Path: "attachments/4-shown-again.png", View: other}),
		entry(t, 12, sessions.KindToolResult, "c2", sessions.ToolResult{Content: []byte(`"attachments/3-only-mentioned.txt"`)}),
	}
	for file, goes := range map[string]bool{
		"attachments/7-waits.txt":                false,
		"attachments/70-other.txt":               true,
		"attachments/8-fetched.png":              false,
		"attachments/4-shown-again.png":          false,
		"attachments/3-only-mentioned.txt":       true,
		"attachments/notes.txt":                  false, // an agent's
		".agent/canvas/c2-load_of_1.html":        false,
		".agent/canvas/c9-load.html":             true,
		".agent/canvas/c9-load.png":              true,
		".agent/canvas/mine.html":                false, // an agent's
		"attachments/0-odd.txt":                  false,
		"attachments/x/70-other.txt":             false,
		view:                                     false,
		other:                                    false,
		ownfiles.Pictures + "/" + shown + ".jpg": true, // another one of the same picture
		ownfiles.Pictures + "/mine.png":          false,
		ownfiles.Results + "/c2.json":            false,
		ownfiles.Results + "/c3.json":            true,
		ownfiles.Results + "/notes.txt":          false,
		ownfiles.Foreign + "/c2-1.png":           false,
		ownfiles.Foreign + "/c-3-2":              true,
		ownfiles.Foreign + "/notes":              false,
		"70-other.txt":                           false,
		".agent/todo.json":                       false,
		"workspace/attachments/70-elsewhere.txt": false,
	} {
		got, err := ownfiles.Unreferenced([]string{file}, entries(log, nil))
		if err != nil || slices.Equal(got, []string{file}) != goes || len(got) > 1 {
			t.Errorf("%s: %q go, %v", file, got, err)
		}
	}
	unread := errors.New("unread")
	if got, err := ownfiles.Unreferenced([]string{"attachments/70-other.txt"}, entries(log, unread)); !errors.Is(err, unread) || got != nil {
		t.Errorf("of a log that cannot be read: %q go, %v", got, err)
	}
	broken := entry(t, 1, sessions.KindFetched, "", nil)
	broken.Data = []byte("no JSON")
	if got, err := ownfiles.Unreferenced([]string{"attachments/70-other.txt"}, entries([]sessions.Entry{broken}, nil)); err == nil || got != nil {
		t.Errorf("of an entry that cannot be read: %q go, %v", got, err)
	}
}

func TestMissingFilesAreExplained(t *testing.T) {
	for name, want := range map[string]string{
		"attachments/3-scan.pdf":                 "Files that people send are kept for only 30 days, so ask for this one again",
		ownfiles.Pictures + "/" + shown + ".png": "Parley keeps copies of pictures for only 30 days",
		ownfiles.Results + "/c.json":             "Parley keeps results for only 30 days, so make the call again",
		ownfiles.Foreign + "/c-1.png":            "Parley keeps results for only 30 days",
		"attachments/notes.txt":                  "",
		"scan.pdf":                               "",
	} {
		if got := ownfiles.Missing(30)(name); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
		if got := ownfiles.Missing(0)(name); got != "" {
			t.Errorf("kept for ever, %s: %q", name, got)
		}
	}
	if got := ownfiles.Missing(1)("attachments/3-scan.pdf"); !strings.Contains(got, "for only a day,") {
		t.Errorf("one day: %q", got)
	}
}
