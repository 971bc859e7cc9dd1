package snapshots_test

import (
	"os"
	"syscall"
	"testing"
)

// What root puts back belongs to whoever owns the workspace, as whom its commands run.
func TestWhatIsPutBackIsGiven(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	const user = 65527
	b := newBench(t, nil)
	b.write("folder/gone", "old")
	b.write("changed", "old")
	for _, name := range []string{".", "folder", "folder/gone", "changed"} {
		must(t, os.Chown(b.path(name), user, user))
	}
	b.turn("t1", func() {
		must(t, os.RemoveAll(b.path("folder")))
		b.write("changed", "new")
	})
	b.undo("u1", 1)
	for _, name := range []string{"folder", "folder/gone", "changed"} {
		info, err := os.Lstat(b.path(name))
		must(t, err)
		if st := info.Sys().(*syscall.Stat_t); st.Uid != user || st.Gid != user {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}
