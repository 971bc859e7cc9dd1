package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"parley/cmd/parley/terminal"
)

// An input that is too long is refused, not cut.
func TestALongInputIsNotCut(t *testing.T) {
	for size, refused := range map[int64]bool{maxFile: false, maxFile + 1: true} {
		file := filepath.Join(t.TempDir(), "input")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file, size); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		body, err := sendCmd{To: []string{"ops"}}.requestBody(terminal.Terminal{In: in})
		if wrong, ok := errors.AsType[*usageError](err); ok != refused || !refused && (err != nil || int64(len(body["text"].(string))) != size) {
			t.Errorf("an input of %d bytes gives %v, %v", size, wrong, err)
		}
	}
}
