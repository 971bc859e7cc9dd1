package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// No key is retired yet; the way to retire one is kept working.
func TestRetiredKeys(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "parley.toml")
	text := "[limits]\nturns = 7\n[serve]\nturbo = \"yes\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	none := func(string) (string, bool) { return "", false }
	gone := []retiredKey{
		{old: "limits.turns", now: "user_turns", tip: "write user_turns"},
		{old: "serve.turbo", tip: "remove it"},
	}
	c, err := load(Options{File: file, Home: dir, Env: none}, schema(), gone)
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.UserTurns != 7 {
		t.Errorf("user_turns = %d, want the retired key's 7", c.Limits.UserTurns)
	}
	want := []string{
		file + ":2: limits.turns: this key is going away: write user_turns",
		file + ":4: serve.turbo: this key is going away: remove it",
	}
	if !slices.Equal(c.Notices(), want) {
		t.Errorf("notices = %q, want %q", c.Notices(), want)
	}
}

// Every line of the table can be read, shown and explained.
func TestSchemaIsWhole(t *testing.T) {
	for _, sec := range schema() {
		for _, set := range sec.settings {
			if set.example == "" {
				t.Errorf("%s.%s has no example", sec.name, set.key)
			}
			if number := set.kind == asCount || set.kind == asMoney || set.kind == asDuration; number && set.least <= 0 {
				t.Errorf("%s.%s has no least: 0 would mean something", sec.name, set.key)
			}
			if set.later && set.def != nil {
				t.Errorf("%s.%s has a default and no effect", sec.name, set.key)
			}
		}
	}
}
