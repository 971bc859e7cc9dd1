package home

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"parley/cmd/parley/config"
)

// chat --workspace lends a directory only to the conversation in that terminal. Other conversations that wait in the
// same home, or in the same fleet, don't see it.
func TestOnesOwnDirectoryIsForOnesOwnConversation(t *testing.T) {
	dir, own := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "parley.toml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{File: file, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	const mine, others = "main:console:default", "main:telegram:2"
	h, err := Open(t.Context(), cfg, WorkspaceOverride{Dir: own, Session: mine}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, session := range []string{mine, others} {
		dir, err := h.Workspace(session)
		if err != nil {
			t.Fatal(err)
		}
		if err := dir.Write("who", []byte(session)); err != nil {
			t.Fatal(err)
		}
	}
	for place, want := range map[string]string{
		filepath.Join(own, "who"): mine, filepath.Join(dir, "workspaces", "main", "telegram:2", "who"): others,
	} {
		if got, err := os.ReadFile(place); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", place, got, err, want)
		}
	}
}
