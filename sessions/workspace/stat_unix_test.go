//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// A remoteFileInfo is a file's info as on another machine that mounts the same disk.
type remoteFileInfo struct {
	fs.FileInfo

	stat syscall.Stat_t
}

func (m remoteFileInfo) Sys() any { return &m.stat }

// A worker on another machine recognizes a file although it mounts the disk under another device number. The
// hashes of earlier releases contain that number.
func TestSharedIdentityIsTheSameOnEveryMachine(t *testing.T) {
	here, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	st, ok := here.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatalf("the system tells %T", here.Sys())
	}
	there := remoteFileInfo{here, *st}
	there.stat.Dev++
	if sharedIdentity(there) != sharedIdentity(here) || localIdentity(there) == localIdentity(here) {
		t.Errorf("here it is %s, there %s", sharedIdentity(here), sharedIdentity(there))
	}
	there.stat.Ino++
	if sharedIdentity(there) == sharedIdentity(here) {
		t.Error("another file is the same")
	}
}
