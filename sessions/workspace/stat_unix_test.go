//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// A mounted is a file as another machine sees it that mounts the same disk.
type mounted struct {
	fs.FileInfo

	stat syscall.Stat_t
}

func (m mounted) Sys() any { return &m.stat }

// A worker on another machine knows a file again, though it has mounted the disk under another device
// number; what releases from before have hashed has that number.
func TestAFileIsTheSameOnEveryMachine(t *testing.T) {
	here, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	st, ok := here.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("the system tells %T", here.Sys())
	}
	there := mounted{here, *st}
	there.stat.Dev++
	if identity(there) != identity(here) || localIdentity(there) == localIdentity(here) {
		t.Errorf("here it is %s, there %s", identity(here), identity(there))
	}
	there.stat.Ino++
	if identity(there) == identity(here) {
		t.Error("another file is the same")
	}
}
