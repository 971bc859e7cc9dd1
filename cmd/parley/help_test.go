package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/terminal"
)

// leaves returns the commands that do something, by their words.
func leaves(t *testing.T) map[string]*kong.Node {
	t.Helper()
	parser, err := newParser(&cli{}, terminal.Terminal{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*kong.Node{}
	for _, leaf := range parser.Model.Leaves(true) {
		words, _, _ := strings.Cut(strings.TrimPrefix(leaf.FullPath(), "parley "), " <")
		words, _, _ = strings.Cut(words, " [<")
		found[words] = leaf
	}
	return found
}

// The help of each command shows examples, and the program accepts them.
func TestHelpShowsExamples(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	for words := range leaves(t) {
		long, _, code := w.Run(append(strings.Fields(words), "--help")...)
		short, _, asked := w.Run(append([]string{"help"}, strings.Fields(words)...)...)
		if code != exitDone || asked != exitDone || long != short {
			t.Errorf("%s: exit codes %d and %d, saying\n%s\nand\n%s", words, code, asked, long, short)
		}
		_, shown, ok := strings.Cut(long, "Examples:")
		if !ok {
			t.Errorf("%s shows no examples:\n%s", words, long)
		}
		for line := range strings.Lines(shown) {
			_, call, ok := strings.Cut(line, "    parley ")
			if !ok || strings.Contains(call, `"`) || strings.Contains(call, "|") {
				continue
			}
			call, _, _ = strings.Cut(call, " >")
			accepts(t, strings.Fields(call))
		}
	}
	if out, _, code := w.Run("--version"); code != exitDone || !strings.HasPrefix(out, "parley ") {
		t.Errorf("--version: exit code %d, saying %q", code, out)
	}
	if out, errs, code := w.Run("help", "nosuch"); code != exitUsage || out != "" || !strings.Contains(errs, "nosuch") {
		t.Errorf("help nosuch: exit code %d, saying %q %q", code, out, errs)
	}
	if _, errs, code := w.Run("forget", "--yes"); code != exitUsage || !strings.Contains(errs, "--user WHO or --session KEY") {
		t.Errorf("forget: exit code %d, saying %q", code, errs)
	}
	for _, call := range [][]string{{"usage", "--from", "may"}, {"usage", "--to", "2026-1-1"}, {"audit", "verify", "--from", "may"}} {
		if _, errs, code := w.Run(call...); code != exitUsage || !strings.Contains(errs, "isn't a day") {
			t.Errorf("%q: exit code %d, saying %q", call, code, errs)
		}
	}
	if out, _, _ := w.Run("forget", "--help"); strings.Contains(out, "--user=WHO --session") {
		t.Errorf("forget reads as if it needed both:\n%s", out)
	}
}

// The completion scripts know every command, and shells accept the scripts.
func TestCompletion(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	for _, shell := range []string{"bash", "zsh", "fish"} {
		out, _, code := w.Run("completion", shell)
		if code != exitDone {
			t.Errorf("%s: exit code %d", shell, code)
		}
		for words := range leaves(t) {
			for word := range strings.FieldsSeq(words) {
				if !strings.Contains(out, word) {
					t.Errorf("%s: the script lacks %s", shell, word)
				}
			}
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to try the script in")
	}
	script, _, _ := w.Run("completion", "bash")
	for typed, want := range map[string][]string{
		"parley pai":              {"pairing"},
		"parley pairing ":         {"list", "approve", "revoke", "owner", "--help", "--config", "--home", "--json", "--version"},
		"parley --json pairing a": {"approve"},
		"parley send --wa":        {"--wait"},
		"parley dead-letters sh":  {"show"},
	} {
		call := script + "\nCOMP_WORDS=(" + typed
		if strings.HasSuffix(typed, " ") {
			call += "''"
		}
		call += "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _parley; printf '%s\\n' \"${COMPREPLY[@]}\""
		out, err := exec.Command(bash, "--norc", "-c", call).CombinedOutput()
		if got := strings.Fields(string(out)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is completed to %q, %v, want %q", typed, got, err, want)
		}
	}
}

// docs/commands.md has every command with its flags, and every exit code.
func TestCommandsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "commands.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, section := range strings.Split(string(raw), "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		sections[strings.Trim(heading, "`")] = text
	}
	all := leaves(t)
	for words, leaf := range all {
		text, ok := sections["parley "+words]
		if !ok {
			t.Errorf("there is no section on parley %s", words)
		}
		for _, f := range leaf.Flags {
			if f.Name != "help" && !strings.Contains(text, "`--"+f.Name) {
				t.Errorf("parley %s: --%s is missing", words, f.Name)
			}
		}
		for _, a := range leaf.Positional {
			if !strings.Contains(strings.ToLower(text), "`"+strings.ToLower(a.Name)) {
				t.Errorf("parley %s: the argument %s is missing", words, a.Name)
			}
		}
	}
	for heading := range sections {
		words, ok := strings.CutPrefix(heading, "parley ")
		if _, known := all[words]; ok && !known {
			t.Errorf("there is no command %s", heading)
		}
	}
	for _, code := range []string{"| 0 ", "| 1 ", "| 2 ", "| 3 ", "| 4 ", "| 78 "} {
		if !strings.Contains(sections["Exit codes"], code) {
			t.Errorf("the exit code %sis missing", code)
		}
	}
	for _, flag := range []string{"`--config FILE`", "`--home DIR`", "`--json`", "`--version`", "`--help`"} {
		if !strings.Contains(sections["Global flags"], flag) {
			t.Errorf("%s is missing", flag)
		}
	}
}
