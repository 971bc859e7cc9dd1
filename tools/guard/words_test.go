package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/tools"
)

// All texts of a call are checked, whatever the order of its arguments.
func TestTextsOfACall(t *testing.T) {
	args := map[string]any{"path": "notes.md", "more": []any{"a", map[string]any{"x": "b"}}, "n": 1.0}
	for i := range 5000 {
		args[fmt.Sprint(i)] = fmt.Sprint("word", i)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	words, folders, err := FileWords(tools.Call{Name: "notes", Args: raw})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"notes.md", "a", "b", "word4999"} {
		if !slices.Contains(words, want) {
			t.Errorf("%q is not among the words", want)
		}
	}
	if !slices.Contains(folders, "notes.md") {
		t.Error("a whole argument names no folder")
	}
}

func TestWordsOfALine(t *testing.T) {
	for line, want := range map[string][]string{
		`cd sub && sh run.sh`:             {"sub", "run.sh"},
		`cd "my dir" && sh r'u'n\.sh`:     {"my dir", "run.sh"},
		`sh -c "cd 'a b'; cat <'c d'"`:    {"a b", "c d"},
		`cat "$PWD/in put"`:               {"in put"},
		`for x in "o n e"; do . $x; done`: {"o n e"},
		`X='w x' cat --file='y z'`:        {"w x", "y z"},
		"cat <<E >'to this'\nE":           {"to this"},
		`git -C 'the repo' commit`:        {"the repo"},
		`(cd $'a\x62' && make)`:           {"ab"},
		`curl -d @body.json`:              {"body.json"},
	} {
		raw, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			t.Fatal(err)
		}
		words, folders, err := FileWords(withDeclaration(tools.Call{Name: "exec_shell", Args: raw}))
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range want {
			if !slices.Contains(words, one) || !slices.Contains(folders, one) {
				t.Errorf("%s: %q is not among %q", line, one, words)
			}
		}
	}
}

func TestTooManyWords(t *testing.T) {
	var text strings.Builder
	for i := range maxWords + 1 {
		fmt.Fprintf(&text, "w%d ", i)
	}
	raw, err := json.Marshal(map[string]string{"text": text.String()})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := FileWords(withDeclaration(tools.Call{Name: "message", Args: raw})); err == nil {
		t.Error("a text of too many words is looked through")
	}
}

// The words of a text are not folders: there are too many of them, and no name is relative to them.
func TestFoldersOfATextAreItsArguments(t *testing.T) {
	_, folders, err := FileWords(newCall("git_commit", "message", "mend docs and src", "path", "repo"))
	if slices.Sort(folders); err != nil || !slices.Equal(folders, []string{"mend docs and src", "repo"}) {
		t.Errorf("folders are %q, %v", folders, err)
	}
}
