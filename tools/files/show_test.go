package files_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/files"
)

// A person who approves a change of a file sees the removed and the added lines.
func TestAChangeIsShownAsADiff(t *testing.T) {
	all, err := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "workspaces")})
	must(t, err)
	t.Cleanup(func() { must(t, all.Close()) })
	d, err := all.Open("main:test:1")
	must(t, err)
	writeFile(t, d.Path(), "a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
	b := files.New(func(_ context.Context, call tools.Call) (files.Dir, error) { return all.Open("main:test:1") }, nil)
	for _, c := range []struct{ tool, args, want string }{
		{"write_file", `{"path":"a.txt","content":"1\n2\n3\n4\nfive\n6\n7\n8\n9\n"}`, "a.txt, from line 2:\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{"write_file", `{"path":"a.txt","content":"1\n2"}`, "a.txt, from line 1:\n 1\n-2\n-3\n-4\n-5\n-6\n-7\n-8\n-9\n+2\n\\ without a line end\n"},
		{"write_file", `{"path":"a.txt","content":"1\n2\n3\n4\n5\n6\n7\n8\n9\n"}`, "a.txt: nothing would change"},
		{"write_file", `{"path":"new.txt","content":"hello"}`, "new.txt, a new file:\n\nhello"},
		{"write_file", `{"path":"../x","content":"hello"}`, "../x, all of it:\n\nhello"},
		{"edit_file", `{"path":"a.txt","old_text":"5\n","new_text":"five\n+x"}`, "a.txt\n-5\n+five\n++x\n\\ without a line end\n"},
		{"apply_patch", `{"patch":"--- a/x\n"}`, "--- a/x\n"},
	} {
		for _, tool := range b {
			if tool.Spec().Name != c.tool {
				continue
			}
			got := tools.ShowingOf(context.Background(), tool, tools.Call{Name: c.tool, Args: json.RawMessage(c.args)})
			if got.Text != c.want {
				t.Errorf("%s %s is shown as\n%s\nwant\n%s", c.tool, c.args, got.Text, c.want)
			}
			var args map[string]any
			if err := json.Unmarshal([]byte(c.args), &args); err != nil || len(args) != len(got.ShownArgs) {
				t.Errorf("%s shows %s of %s (%v)", c.tool, strings.Join(got.ShownArgs, ", "), c.args, err)
			}
		}
	}
}
