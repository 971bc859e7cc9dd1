package snapshots_test

import (
	"os"
	"syscall"
	"testing"
)

// Files that root restores belong to the owner of the workspace, as whom its commands run.
func TestRestoredFilesKeepTheWorkspacesOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	const user = 65527
	b := newHistoryTest(t, nil)
	b.write("folder/gone", "old")
	b.write("changed", "old")
	for _, name := range []string{".", "folder", "folder/gone", "changed"} {
		requireNoError(t, os.Chown(b.path(name), user, user))
	}
	b.runTurn("t1", func() {
		requireNoError(t, os.RemoveAll(b.path("folder")))
		b.write("changed", "new")
	})
	b.undo("u1", 1)
	for _, name := range []string{"folder", "folder/gone", "changed"} {
		info, err := os.Lstat(b.path(name))
		requireNoError(t, err)
		if st := info.Sys().(*syscall.Stat_t); st.Uid != user || st.Gid != user {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}
