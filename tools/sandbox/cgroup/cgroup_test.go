//go:build linux

package cgroup_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/cgroup"
)

func find(t *testing.T) cgroup.Place {
	t.Helper()
	place, err := cgroup.Find()
	if err != nil {
		t.Skip("NOT TESTED: control groups: ", err)
	}
	return place
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// gone tells whether none of some folders is there.
func gone(folders []string) bool {
	return !slices.ContainsFunc(folders, func(dir string) bool {
		_, err := os.Stat(dir)
		return err == nil
	})
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// end ends a group's processes, which may be making new ones.
func end(t *testing.T, g *cgroup.Group, cmd *exec.Cmd) {
	t.Helper()
	g.Kill()
	_ = cmd.Wait() // it was killed
	waitFor(t, "the group to be empty", func() bool { return !g.Kill() })
	must(t, g.Remove())
}

func TestGroupHasNoMoreProcessesThanItMay(t *testing.T) {
	place := find(t)
	if place.Pids.Path == "" {
		t.Skip("NOT TESTED: groups that bound processes")
	}
	g, err := place.Make(cgroup.Limits{Tasks: 100})
	must(t, err)
	cmd := exec.Command("sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 1000")
	must(t, g.Start(cmd))
	waitFor(t, "a refusal", func() bool {
		tasks, memory := g.Refused()
		if memory {
			t.Error("memory was refused")
		}
		return tasks
	})
	folders := g.Folders()
	for _, dir := range folders {
		if raw, err := os.ReadFile(filepath.Join(dir, "pids.current")); err == nil {
			if n, _ := strconv.Atoi(strings.TrimSpace(string(raw))); n > 100 {
				t.Errorf("%d processes were made", n)
			}
		}
	}
	end(t, g, cmd)
	if !gone(folders) {
		t.Errorf("some of %v are left", folders)
	}
}

func TestGroupTakesNoMoreMemoryThanItMay(t *testing.T) {
	place := find(t)
	if place.Memory.Path == "" {
		t.Skip("NOT TESTED: groups that bound memory")
	}
	g, err := place.Make(cgroup.Limits{Memory: 32 << 20})
	must(t, err)
	cmd := exec.Command("sh", "-c", `a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done`)
	must(t, g.Start(cmd))
	if err := cmd.Wait(); err == nil {
		t.Error("it ended well")
	}
	if tasks, memory := g.Refused(); tasks || !memory {
		t.Errorf("refused were processes: %v, memory: %v", tasks, memory)
	}
	g.Kill()
	must(t, g.Remove())
}

// Whoever makes a group may die at any moment. What is left of it goes, and what
// somebody looks after stays.
func TestWhatIsLeftIsRemoved(t *testing.T) {
	place := find(t)
	kept, err := place.Make(cgroup.Limits{})
	must(t, err)
	held := exec.Command("sleep", "1000")
	must(t, kept.Start(held))
	g, err := place.Make(cgroup.Limits{})
	must(t, err)
	cmd := exec.Command("sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000")
	must(t, g.Start(cmd))
	folders := g.Folders()
	g.SimulateKill()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	again, err := cgroup.Find()
	must(t, err)
	if again != place {
		t.Errorf("groups are made in %v and then in %v", place, again)
	}
	if err := <-ended; err == nil {
		t.Error("it ended by itself")
	}
	waitFor(t, "the group to be removed", func() bool {
		place.Sweep()
		return gone(folders)
	})
	if err := unix.Kill(held.Process.Pid, 0); err != nil {
		t.Errorf("what is looked after was ended: %v", err)
	}
	end(t, kept, held)
}

func BenchmarkStart(b *testing.B) {
	b.Run("without", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("in a group", func(b *testing.B) {
		place, err := cgroup.Find()
		if err != nil {
			b.Skip(err)
		}
		for b.Loop() {
			g, err := place.Make(cgroup.Limits{Tasks: 512, Memory: 512 << 20})
			if err != nil {
				b.Fatal(err)
			}
			cmd := exec.Command("true")
			if err := g.Start(cmd); err != nil {
				b.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				b.Fatal(err)
			}
			g.Kill()
			if err := g.Remove(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
