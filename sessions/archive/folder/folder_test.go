package folder_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/sessions/archive/folder"
)

func TestStoredFilesAreReadBack(t *testing.T) {
	dir := t.TempDir()
	f := folder.New(dir)
	if err := f.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that isn't there: %v", err)
	}
	left, others := filepath.Join(dir, "b.1.parley-part"), filepath.Join(dir, "a.2.parley-part")
	for _, part := range []string{left, others} {
		if err := os.WriteFile(part, []byte("of a process that died, or still writes"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if old := time.Now().Add(-25 * time.Hour); os.Chtimes(left, old, old) != nil {
		t.Fatal("the part doesn't get old")
	}
	if err := f.Put(t.Context(), "a", strings.NewReader("hello"), 5); err != nil {
		t.Fatal(err)
	}
	file, err := f.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got, err := io.ReadAll(file); err != nil || string(got) != "hello" {
		t.Errorf("the file has %q, %v", got, err)
	}
	if names, err := f.Names(t.Context()); err != nil || !slices.Equal(names, []string{"a", filepath.Base(others)}) {
		t.Errorf("the names are %q, %v", names, err)
	}
	if about, err := os.Stat(filepath.Join(dir, "a")); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", about, err)
	}
}

// After a failure, there is nothing that could be mistaken for a file of the archive.
func TestFolderErrors(t *testing.T) {
	dir := t.TempDir()
	for path, says := range map[string]string{filepath.Join(dir, "none"): "doesn't exist", filepath.Join(dir, "file"): "isn't a folder"} {
		if strings.HasSuffix(path, "file") {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := folder.New(path).Check(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	f := folder.New(dir)
	if err := f.Put(t.Context(), "a", brokenReader{}, 5); err == nil {
		t.Error("a file that can't be read is there")
	}
	if err := os.Mkdir(filepath.Join(dir, "b"), 0o700); err != nil { // in the way
		t.Fatal(err)
	}
	if err := f.Put(t.Context(), "b", strings.NewReader("x"), 1); err == nil {
		t.Error("a file was written over a folder")
	}
	if names, err := f.Names(t.Context()); err != nil || !slices.Equal(names, []string{"file"}) {
		t.Errorf("these files are left: %q, %v", names, err)
	}
}

type brokenReader struct{ io.ReadSeeker }

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
