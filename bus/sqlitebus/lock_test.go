package sqlitebus

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

// A child process that is being started has the file of the lock open until it runs its own program.
func TestChildrenDoNotKeepTheLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bus.db")
	lock, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(lock.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(child)
	if _, err := Lock(path); !inUse(err) {
		t.Errorf("while it is held: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(path)
	if err != nil {
		t.Fatalf("after it was closed: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func inUse(err error) bool {
	_, ok := errors.AsType[*InUseError](err)
	return ok
}
