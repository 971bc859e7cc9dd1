package knowledge_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/knowledge"
	"parley/tools/toolstest"
)

var args = toolstest.Args

// newCaller has the file tools over a session's real directory with an operator's folder
// in it, and where that is.
func newCaller(t *testing.T) (c *toolstest.Caller, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"deploy.md": "We deploy on Mondays.\n", "hosts/db.md": "The database is on db1.\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	base, err := knowledge.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { base.Close() })
	all, err := workspace.New(workspace.Config{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	c = toolstest.New(files.New(func(_ context.Context, call tools.Call) (files.Dir, error) {
		d, err := all.Open(call.Session)
		if err != nil {
			return nil, err
		}
		return base.Overlay(d), nil
	}, nil)...)
	return c, dir
}

// The tools that read find the folder as any other, beside what the session has.
func TestTheFolderIsRead(t *testing.T) {
	c, dir := newCaller(t)
	try := func(tool, with string, words ...string) {
		t.Helper()
		got, err := c.Try(t.Context(), tool, with)
		if err != nil {
			t.Errorf("%s %s: %v", tool, with, err)
		}
		for _, w := range words {
			if !strings.Contains(got, w) {
				t.Errorf("%s %s gave %s, which lacks %q", tool, with, got, w)
			}
		}
		if strings.Contains(got, dir) || strings.Contains(got, "a secret") {
			t.Errorf("%s %s gave %s", tool, with, got)
		}
	}
	try("write_file", args("path", "own.md", "content", "mine: Mondays"), "Successfully")
	try("list_directory", args("path", "."), `"knowledge"`, `"own.md"`)
	try("list_directory", args("path", "knowledge"), `"deploy.md"`, `"hosts"`)
	try("read_file", args("path", "knowledge/deploy.md"), "We deploy on Mondays")
	try("read_file", args("path", "./knowledge/hosts/../deploy.md"), "We deploy on Mondays")
	try("glob", args("pattern", "**/*.md"), "knowledge/hosts/db.md", "own.md")
	try("grep", args("pattern", "Mondays"), "knowledge/deploy.md", "own.md")
}

// Nothing changes it, and nothing leads out of it.
func TestTheFolderIsOnlyRead(t *testing.T) {
	c, dir := newCaller(t)
	c.WantError(t, "write_file", args("path", "knowledge/new.md", "content", "x"), tools.PermissionDenied, "operator's")
	c.WantError(t, "write_file", args("path", "knowledge", "content", "x"), tools.PermissionDenied)
	c.WantError(t, "edit_file", args("path", "knowledge/deploy.md", "old_text", "Mondays", "new_text", "Fridays"), tools.PermissionDenied)
	c.WantError(t, "apply_patch", args("patch", "--- a/knowledge/deploy.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-We deploy on Mondays.\n"), tools.ExecutionFailed, "nothing was changed")
	c.WantError(t, "read_file", args("path", "knowledge/none.md"), tools.FileNotFound)
	for _, path := range []string{"knowledge/link.md", "knowledge/../../x", "knowledge/hosts"} {
		if got, err := c.Try(t.Context(), "read_file", args("path", path)); err == nil || strings.Contains(err.Error(), dir) {
			t.Errorf("%s gave %s, %v", path, got, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "deploy.md")); err != nil || string(text) != "We deploy on Mondays.\n" {
		t.Errorf("it holds %q, %v", text, err)
	}
}

// What a session has under that name is hidden while there is such a folder.
func TestTheFolderHidesTheSessionsOwn(t *testing.T) {
	dir := t.TempDir()
	base, err := knowledge.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	all, err := workspace.New(workspace.Config{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	own, err := all.Open("main:telegram:42")
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Write("knowledge/own.md", []byte("x")); err != nil {
		t.Fatal(err)
	}
	list, err := base.Overlay(own).ReadDir(".")
	if err != nil || len(list) != 1 || list[0].Name() != "knowledge" {
		t.Errorf("there are %v, %v", list, err)
	}
	if _, err := base.Overlay(own).Open("knowledge/own.md"); err == nil {
		t.Error("the session's own file is not hidden")
	}
}
