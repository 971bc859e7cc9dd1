package main

import (
	"bytes"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"
)

// fourTexts is a file with more texts for people than a package may have outside of its file of texts.
const fourTexts = `package planted

func all() []string {
	return []string{"I can't do this.", "I can't do that.", "You may ask again.", "Nobody has asked me."}
}
`

func checked(t *testing.T, files map[string]string, scattered ...string) (string, bool) {
	t.Helper()
	tree := fstest.MapFS{}
	for name, source := range files {
		tree[name] = &fstest.MapFile{Data: []byte(source)}
	}
	var out bytes.Buffer
	found, err := check(&out, tree, []string{"planted"}, scattered)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), found
}

func TestATextInTheWrongFileIsFound(t *testing.T) {
	outside := "package planted\n\nimport \"fmt\"\n\nfunc say(n int) string { return fmt.Sprintf(\"You have %d messages.\", n) }\n"
	out, found := checked(t, map[string]string{"planted/texts.go": fourTexts, "planted/say.go": outside})
	if want := "planted/say.go:5: move this to texts.go: You have %d messages.\n"; !found || out != want {
		t.Errorf("it says %q, want %q", out, want)
	}
}

func TestWhatMayStandAnywhere(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"all together": {"planted/texts.go": fourTexts},
		"few texts":    {"planted/say.go": "package planted\n\nconst a, b, c = \"I can't do this.\", \"You may ask again.\", \"Nobody has asked me.\"\n"},
		"for models":   {"planted/texts_for_models.go": fourTexts},
		"tests":        {"planted/say_test.go": fourTexts},
		"help of flags": {"planted/texts.go": fourTexts,
			"planted/flags.go": "package planted\n\ntype command struct {\n\tYes bool `help:\"Do it without asking you first.\"`\n}\n"},
		"the log and errors": {"planted/texts.go": fourTexts,
			"planted/log.go": "package planted\n\nvar err = errors.New(\"This is one for programmers.\")\n\nfunc f() { log.Info(\"This is one for operators.\") }\n"},
		"no sentences": {"planted/texts.go": fourTexts,
			"planted/sql.go": "package planted\n\nconst a, b, c, d = \"SELECT a FROM b WHERE c = ?\", \"Mon Jan 2 15:04\", `(?i)What is it.`, \"ExecStart=%q serve --config %q\"\n"},
	} {
		if out, found := checked(t, files); found {
			t.Errorf("%s: it finds %s", name, out)
		}
	}
}

func TestAScatteredPackageIsTakenOffTheList(t *testing.T) {
	if out, found := checked(t, map[string]string{"planted/say.go": fourTexts}, "planted"); found {
		t.Errorf("it finds %q in a package on the list", out)
	}
	out, found := checked(t, map[string]string{"planted/texts.go": fourTexts}, "planted")
	if !found || !strings.Contains(out, "planted has its texts together") {
		t.Errorf("it says %q of a package that is on the list without need", out)
	}
}

// check lists the texts that people read, wherever they are and however they begin.
func TestWhatIsPrinted(t *testing.T) {
	for name, c := range map[string]struct {
		file, source string
		want         []string
	}{
		"a menu":                {"planted/menu.go", `var c = command{Description: "Begin a new conversation here"}`, []string{"Begin a new conversation here"}},
		"what the program says": {"planted/main.go", `var o = kong.Description("An agent that loses nothing.")`, []string{"An agent that loses nothing."}},
		"a problem": {"planted/load.go", `var f = fault{Wrong: "names no chat", Remedy: "write " + near + ", or remove it"}`,
			[]string{"names no chat", ", or remove it"}},
		"an error of a command":     {"cmd/parley/send.go", `var err = fmt.Errorf("no server is running: %w", cause)`, []string{"no server is running: %w"}},
		"why a call needs somebody": {"tools/guard/rules.go", `var v = askVerdict("no rule allows %q", text)`, []string{"no rule allows %q"}},
		"a phrase":                  {"planted/texts.go", `const a = "; at most %d are waiting"`, []string{"; at most %d are waiting"}},
		"a line":                    {"planted/texts.go", `const a = "%s is paused now\n"`, []string{"%s is paused now\n    "}},
		"an error for the log":      {"planted/send.go", `var err = errors.New("no server is running")`, nil},
		"the log":                   {"cmd/parley/serve.go", `func f() { log.Info("the server is running") }`, nil},
		"SQL":                       {"planted/sql.go", `const a = "SELECT one FROM two"`, nil},
		"what servers say":          {"agent/openai/overflow.go", `const a = "the prompt is too long"`, nil},
		"what models read":          {"planted/texts_for_models.go", `const a = "; at most %d are waiting"`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tree := fstest.MapFS{c.file: &fstest.MapFile{Data: []byte("package planted\n\n" + c.source + "\n")}}
			if _, err := printAll(&out, tree, []string{path.Dir(c.file)}); err != nil {
				t.Fatal(err)
			}
			want := ""
			for _, words := range c.want {
				want += c.file + ":3: " + words + "\n"
			}
			if out.String() != want {
				t.Errorf("it prints %q, want %q", &out, want)
			}
		})
	}
}

// The program itself passes the check.
func TestTheProgramsTextsStandTogether(t *testing.T) {
	var out bytes.Buffer
	if _, err := check(&out, os.DirFS("../.."), program(), scattered()); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("the program's texts:\n%s", &out)
	}
}
