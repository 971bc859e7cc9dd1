package workspace_test

import (
	"io/fs"
	"testing"

	"parley/sessions/workspace"
)

func newBenchDir(b *testing.B) *workspace.Dir {
	b.Helper()
	all, err := workspace.New(workspace.Config{Root: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { all.Close() })
	d, err := all.Open("main:telegram:42")
	if err == nil {
		err = d.Write("notes.txt", []byte("hello"))
	}
	if err != nil {
		b.Fatal(err)
	}
	return d
}

func BenchmarkWrite(b *testing.B) {
	d := newBenchDir(b)
	for b.Loop() {
		if err := d.Write("notes.txt", []byte("hello")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	d := newBenchDir(b)
	for b.Loop() {
		if _, err := fs.ReadFile(d, "notes.txt"); err != nil {
			b.Fatal(err)
		}
	}
}
