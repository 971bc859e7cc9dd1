package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	c, err := load(Options{File: file, Home: dir, Env: none}, declarations(nil), gone)
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

// Every line of the table can be read, shown, explained and filled in.
func TestDeclarationsAreWhole(t *testing.T) {
	for _, sec := range declarations([]Platform{{Name: "x"}}) {
		for _, set := range sec.settings {
			name := sec.name + "." + set.key
			if set.example == "" && set.def == nil {
				t.Errorf("%s has neither an example nor a default", name)
			}
			if number := set.kind == asCount || set.kind == asMoney || set.kind == asDuration; number && (set.least <= 0) != set.zeroIsOff {
				t.Errorf("%s has no least: 0 would mean something", name)
			}
			if set.since == "" {
				t.Errorf("%s does not say since when it has an effect", name)
			}
			if set.hasNoEffectYet() && set.def != nil {
				t.Errorf("%s has a default and no effect", name)
			}
			if !set.hasNoEffectYet() && !sec.keysAreNames() && set.fills == nil {
				t.Errorf("%s fills no field", name)
			}
		}
	}
}

// A setting may stand in a table below its section's.
func TestNestedTables(t *testing.T) {
	sections := declarations(nil)
	for i := range sections {
		nested := setting{key: "shell.timeout", kind: asCount, def: int64(30), least: 1, since: first}
		if name := sections[i].name; name == "agents" || name == "serve" {
			if name == "agents" {
				nested.fills = into(func(a *Agent) any { return &a.ToolErrorLimit })
			}
			nested.reload = atOnce
			sections[i].settings = append(sections[i].settings, nested)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "parley.toml")
	read := func(text string) (*Config, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return load(Options{File: file, Home: dir, Env: func(string) (string, bool) { return "", false }}, sections, nil)
	}
	old, err := read("[agents.defaults.shell]\ntimeout = 4\n[agents.helper]\nshell = { timeout = 5 }\n[serve.shell]\ntimeout = 6\n")
	if err != nil {
		t.Fatal(err)
	}
	if main, helper := old.Agents["main"].ToolErrorLimit, old.Agents["helper"].ToolErrorLimit; main != 4 || helper != 5 {
		t.Errorf("main has %d and helper %d, want 4 and 5", main, helper)
	}
	var out strings.Builder
	if err := old.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nshell.timeout = 5  # " + file + ":4\n", "\nshell.timeout = 6  # " + file + ":6\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, out.String())
		}
	}
	next, err := read("[agents.helper]\n[agents.helper.shell]\ntimeout = 7\n")
	if err != nil {
		t.Fatal(err)
	}
	_, changes, err := Reload(old, next)
	if want := []string{"agents.helper.shell.timeout", "agents.main.shell.timeout", "serve.shell.timeout"}; err != nil || !slices.Equal(changes.Live, want) {
		t.Errorf("a reload takes %q, want %q (%v)", changes.Live, want, err)
	}
	for text, want := range map[string]string{
		"[agents.main.shell]\ntimeuot = 1\n": "agents.main.shell.timeuot: unknown key: did you mean timeout?",
		"[agents.main]\nshell = 1\n":         "agents.main.shell: wants a table, found an integer: write [agents.main.shell]",
		"[agents.main.shell]\ntimeout = 0\n": "agents.main.shell.timeout: too small",
		"[agents.main]\nshel = 1\n":          "agents.main.shel: unknown key: did you mean shell?",
		"[serve.shell]\ntimeout = \"1\"\n":   "serve.shell.timeout: wants an integer, found a text: write for example timeout = 30",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is told as %v, want %s", text, err, want)
		}
	}
}
