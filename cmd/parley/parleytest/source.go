package parleytest

import (
	"os"
	"path/filepath"
	"testing"
)

// ReadSource returns the content of a file in this repository. The path begins at its top.
func ReadSource(t testing.TB, path string) string {
	t.Helper()
	dir, err := os.Getwd()
	Must(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		above := filepath.Dir(dir)
		if above == dir {
			t.Fatal("no folder above has a go.mod")
		}
		dir = above
	}
	raw, err := os.ReadFile(filepath.Join(dir, path))
	Must(t, err)
	return string(raw)
}
