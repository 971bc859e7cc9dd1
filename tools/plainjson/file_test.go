package plainjson_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/tools/plainjson"
)

type note struct {
	Words string `json:"words"`
}

func TestWhatIsReplacedIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note.json")
	if got, err := plainjson.ReadFile[note](path); err != nil || got != (note{}) {
		t.Errorf("no file: %+v, %v", got, err)
	}
	for _, words := range []string{"one", "two"} {
		if err := plainjson.ReplaceFile(path, note{words}); err != nil {
			t.Fatal(err)
		}
		if got, err := plainjson.ReadFile[note](path); err != nil || got.Words != words {
			t.Errorf("got %+v, %v; want %s", got, err, words)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may read it", info, err)
	}
}

func TestAFileThatCannotBeReadIsNotAnEmptyOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note.json")
	if err := os.WriteFile(path, []byte(`{"words": `), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := plainjson.ReadFile[note](path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := plainjson.ReadFile[note](filepath.Dir(path)); err == nil {
		t.Errorf("of a directory: %+v", got)
	}
}

func TestWhatCannotBeReplacedStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note.json")
	if err := plainjson.ReplaceFile(path, note{"one"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := plainjson.ReplaceFile(path, note{"two"}); err == nil {
		t.Error("replaced")
	}
	if got, err := plainjson.ReadFile[note](path); err != nil || got.Words != "one" {
		t.Errorf("got %+v, %v", got, err)
	}
}
