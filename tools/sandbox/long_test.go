//go:build linux

package sandbox_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"parley/tools/sandbox"
)

// The kernel accepts an argument of 128 KB. A script of that size runs, whatever characters it contains, and leaves
// nothing behind.
func TestALongCommandRuns(t *testing.T) {
	const size = 120_000
	line := ": '" + strings.Repeat("<", size) + `'; printf %s "$1" | wc -c`
	check := func(t *testing.T, b *sandbox.Box) {
		t.Helper()
		if r := runShell(t, b, t.TempDir(), line, strings.Repeat("&", size)); strings.TrimSpace(r.Stdout) != strconv.Itoa(size) || r.Killed != "" {
			t.Errorf("it said %.100q, %.100q, killed %q", r.Stdout, r.Stderr, r.Killed)
		}
	}
	for name, mode := range map[string]sandbox.Mode{
		"none": sandbox.None, "landlock": sandbox.Landlock, "bubblewrap": sandbox.Bubblewrap, "bubblewrap with hosts": sandbox.Bubblewrap,
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			t.Setenv("TMPDIR", tmp)
			b := openBox(t, mode, func(cfg *sandbox.Config) {
				if name == "bubblewrap with hosts" {
					cfg.Network.Hosts = []string{"example.com"}
				}
			})
			check(t, b)
			if left, _ := filepath.Glob(filepath.Join(tmp, "parley-command-*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
