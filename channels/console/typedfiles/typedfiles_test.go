package typedfiles_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/channels/console/typedfiles"
)

// folder makes a folder with some files, and makes it the working directory.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	for _, name := range []string{"notes.txt", "my notes.txt", "it's.txt", "sub/plan.png", "sub/plum.png", "empty"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		content := []byte("content")
		if name == "empty" {
			content = nil
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("large", make([]byte, typedfiles.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFilesAreFoundInTypedText(t *testing.T) {
	dir := folder(t)
	for text, want := range map[string][]string{
		"read @notes.txt":               {"notes.txt"},
		"@notes.txt, please":            {"notes.txt"},
		"what is in (@notes.txt)?":      {"notes.txt"},
		"@~/notes.txt":                  {"notes.txt"},
		"@" + dir + "/notes.txt":        {"notes.txt"},
		"@file://" + dir + "/notes.txt": {"notes.txt"},
		"@file://" + dir + "/my%20notes.txt and @sub/plan.png": {"my notes.txt", "plan.png"},
		`@"my notes.txt" @my\ notes.txt @'my notes.txt'`:       {"my notes.txt"},
		`@it\'s.txt @"it's.txt"`:                               {"it's.txt"},
		"two\n@notes.txt\n":                                    {"notes.txt"},
		"write to ann@notes.txt":                               nil,
		`\@notes.txt`:                                          nil,
		"notes.txt":                                            nil,
		"@nobody, what is @ in @nothing/there.txt?":            nil,
		"@file://elsewhere" + dir + "/notes.txt":               nil,
	} {
		found, wrong := typedfiles.Find(text)
		var names []string
		for _, f := range found {
			names = append(names, f.Name)
			if raw, err := os.ReadFile(f.Ref); err != nil || int64(len(raw)) != f.Size {
				t.Errorf("%q: %+v cannot be read: %v", text, f, err)
			}
		}
		if !slices.Equal(names, want) || wrong != "" {
			t.Errorf("%q names %q %q, want %q", text, names, wrong, want)
		}
	}
	for text, want := range map[string]string{"@sub": "is a folder", "@large": "more than the 10 MB", "@empty": "is empty", "@/dev/null": "isn't a regular file"} {
		if found, wrong := typedfiles.Find(text); found != nil || !strings.Contains(wrong, want) {
			t.Errorf("%q: %v %q", text, found, wrong)
		}
	}
}

// A path that is dropped onto a terminal becomes a name. Text that strangers wrote names no files.
func TestPastedTexts(t *testing.T) {
	dir := folder(t)
	for text, want := range map[string]string{
		dir + "/notes.txt":                                "@" + dir + "/notes.txt ",
		"'" + dir + "/my notes.txt' ":                     "@" + dir + `/my\ notes.txt `,
		dir + `/my\ notes.txt`:                            "@" + dir + `/my\ notes.txt `,
		dir + `/my notes.txt`:                             "@" + dir + `/my\ notes.txt `,
		"file://" + dir + "/my%20notes.txt\r\n":           "@" + dir + `/my\ notes.txt `,
		dir + "/notes.txt " + dir + "/sub/plan.png\n":     "@" + dir + "/notes.txt @" + dir + "/sub/plan.png ",
		"notes.txt":                                       "notes.txt",
		dir + "/nothing.txt":                              dir + "/nothing.txt",
		dir + "/sub":                                      dir + "/sub",
		dir + "/notes.txt is mine":                        dir + "/notes.txt is mine",
		"Please look at @" + dir + "/notes.txt, and @ann": `Please look at \@` + dir + "/notes.txt, and @ann",
		"":  "",
		" ": " ",
	} {
		got := typedfiles.Pasted(text)
		if got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if found, _ := typedfiles.Find(got); (len(found) > 0) != strings.HasPrefix(want, "@") {
			t.Errorf("%q names %v", got, found)
		}
	}
}

func TestNamesAreCompleted(t *testing.T) {
	folder(t)
	for text, want := range map[string][]string{
		"see @no":         {"@notes.txt"},
		"see @sub":        {"@sub/"},
		"see @sub/pl":     {"@sub/plan.png", "@sub/plum.png"},
		"see @my":         {`@my\ notes.txt`},
		`see @my\ n`:      {`@my\ notes.txt`},
		`see @"my n`:      {`@"my notes.txt"`},
		"see @~/su":       {"@~/sub/"},
		"see @x":          nil,
		"see @notes.txt ": nil,
		"see":             nil,
	} {
		at, may := typedfiles.Complete(text)
		if !slices.Equal(may, want) || len(may) > 0 && text[at] != '@' {
			t.Errorf("%q may become %q at %d, want %q", text, may, at, want)
		}
	}
}
