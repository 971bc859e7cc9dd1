package todo_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/todo"
	"parley/tools/toolstest"
)

var _ = flag.Bool("update", false, "write the golden files")

// newCaller has the tools over a session's real directory, and the file's path.
func newCaller(t *testing.T) (c *toolstest.Caller, file string) {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	c = toolstest.New(todo.New(func(_ context.Context, call tools.Call) (todo.Dir, error) { return all.Open(call.Session) })...)
	d, err := all.Open(c.Call.Session)
	if err != nil {
		t.Fatal(err)
	}
	return c, filepath.Join(d.Path(), todo.File)
}

func TestGolden(t *testing.T) {
	c, _ := newCaller(t)
	c.Golden(t, "testdata/specs.json")
}

// What is written is read again, and people are told of it.
func TestTheListIsKeptAndShown(t *testing.T) {
	c, file := newCaller(t)
	var told []string
	c.Call.Progress = func(text string) { told = append(told, text) }
	c.Want(t, "todo_read", "{}", `{"items":[]}`)
	const items = `{"items":[{"text":"look","state":"done"},{"text":"mend  it\nwell","state":"doing"},{"text":"test","state":"pending"}]}`
	const want = `{"items":[{"text":"look","state":"done"},{"text":"mend it well","state":"doing"},{"text":"test","state":"pending"}]}`
	c.Want(t, "todo_write", items, want)
	c.Want(t, "todo_write", items, want)
	c.Want(t, "todo_read", "{}", want)
	if len(told) != 2 || told[0] != "1 of 3 done\n☑ look\n▶ mend it well\n☐ test" {
		t.Errorf("people are told %q", told)
	}
	c.Want(t, "todo_write", `{"items":[]}`, `{"items":[]}`)
	if err := os.WriteFile(file, []byte("no list"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.WantError(t, "todo_read", "{}", tools.ExecutionFailed)
}

func TestWhatIsNoList(t *testing.T) {
	c, _ := newCaller(t)
	many := strings.TrimSuffix(strings.Repeat(`{"text":"x","state":"done"},`, 51), ",")
	for _, args := range []string{
		`{}`, `{"items":[{"text":" ","state":"done"}]}`, `{"items":[{"text":"x","state":"later"}]}`, `{"items":[{"text":"x"}]}`,
		`{"items":[` + many + `]}`, fmt.Sprintf(`{"items":[{"text":%q,"state":"done"}]}`, strings.Repeat("x", 301)),
	} {
		c.WantError(t, "todo_write", args, tools.InvalidArgs)
	}
}

// Of a long list what is to be done is shown, and how much there is.
func TestALongListIsShownInBrief(t *testing.T) {
	c, _ := newCaller(t)
	var told string
	c.Call.Progress = func(text string) { told = text }
	var items []string
	for i := range 40 {
		state := "pending"
		if i < 20 {
			state = "done"
		}
		items = append(items, fmt.Sprintf(`{"text":"step %d","state":%q}`, i, state))
	}
	if _, err := c.Try(t.Context(), "todo_write", `{"items":[`+strings.Join(items, ",")+`]}`); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(told, "\n")
	if lines[0] != "20 of 40 done" || lines[1] != "☐ step 20" || lines[len(lines)-1] != "… and 8 more" || len(lines) != 14 {
		t.Errorf("people are told %q", told)
	}
}
