package server_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/hometest"
	"parley/tools"
	"parley/tools/canvas"
	"parley/tools/canvas/folder"
	"parley/tools/guard"
)

// A canvas may run scripts only in a frame, and only if no stranger can have written any part of its file, even after
// others have changed it. Only canvases of an allowed size are read.
func TestScriptsOfACanvas(t *testing.T) {
	h := hometest.Open(t, t.TempDir())
	dir, err := h.Workspaces.Open(hometest.Key(t, "42"))
	if err != nil {
		t.Fatal(err)
	}
	const page = "<p>hello</p><script>run()</script>"
	keep := folder.Keep(func(context.Context, tools.Call) (folder.Dir, error) { return dir, nil })
	file, err := keep(t.Context(), tools.Call{ID: "c1"}, "c1-a.html", []byte(page))
	if err != nil || file != canvas.Folder+"/c1-a.html" {
		t.Fatal(file, err)
	}
	want := func(scripts, run bool) {
		t.Helper()
		doc, policy, err := folder.Read(t.Context(), &canvas.Reader{}, folder.Room{Files: dir}, "c1-a.html", scripts)
		if err != nil || !strings.Contains(string(doc), "hello") || strings.Contains(string(doc), "run()") != run ||
			strings.Contains(policy, "allow-scripts") != run || strings.Contains(policy, "script-src") != run || !strings.HasPrefix(policy, "sandbox") || !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("with scripts %v: %s, %q, %v", scripts, doc, policy, err)
		}
	}
	want(true, true)
	want(false, false)
	if err := guard.ChangeMarks(dir, false, []string{file}, nil); err != nil { // as when the agent writes it again
		t.Fatal(err)
	}
	want(true, false)
	if err := guard.ChangeMarks(dir, false, nil, []string{file}); err != nil {
		t.Fatal(err)
	}
	want(true, true)
	if _, err := keep(t.Context(), tools.Call{ID: "c1", Untrusted: true}, "c1-a.html", []byte(page)); err != nil {
		t.Fatal(err)
	}
	want(true, false)
	if err := dir.Write(file, []byte(strings.Repeat("<div>", 1000))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := folder.Read(t.Context(), &canvas.Reader{}, folder.Room{Files: dir}, "c1-a.html", true); err == nil || !strings.Contains(err.Error(), "can't be shown") {
		t.Errorf("one that can't be read: %v", err)
	}

	if err := dir.Write("a.html", []byte(page)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir.Path(), filepath.FromSlash(file)), 50<<20); err != nil {
		t.Fatal(err)
	}
	if _, _, err := folder.Read(t.Context(), &canvas.Reader{}, folder.Room{Files: dir}, "c1-a.html", true); err == nil || !strings.Contains(err.Error(), "isn't shown") {
		t.Errorf("one of 50 MB: %v", err)
	}
	for _, name := range []string{"none.html", "../../a.html", "../untrusted.json", "c1-a.png", "", ".", "/etc/passwd"} {
		if _, _, err := folder.Read(t.Context(), &canvas.Reader{}, folder.Room{Files: dir}, name, true); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
