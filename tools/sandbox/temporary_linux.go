package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// temporaryPrefix begins the names of folders for what one command leaves behind.
const temporaryPrefix = "parley-command-"

// staleAfter is older than any command gets.
const staleAfter = 24 * time.Hour

// removeTree removes a folder with all that is in it, also where a command has
// closed some of it to its owner.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if _, err := measure(dir); err != nil { // it opens what is closed
		return err
	}
	return os.RemoveAll(dir)
}

// sweep removes what commands have left whose supervisor was killed.
func sweep() {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), temporaryPrefix) && time.Since(info.ModTime()) > staleAfter {
			_ = removeTree(filepath.Join(os.TempDir(), e.Name())) // it may be another user's
		}
	}
}
