//go:build linux

package sandbox_test

import (
	"context"
	"os/exec"
	"testing"

	"parley/tools/sandbox"
)

// BenchmarkCommand measures how much time isolation and supervisor add to a command; the first case has neither.
func BenchmarkCommand(b *testing.B) {
	workspace := b.TempDir()
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("sh", "-c", "true")
			cmd.Dir = workspace
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, mode := range []sandbox.Mode{sandbox.Bubblewrap, sandbox.Landlock} {
		b.Run(string(mode), func(b *testing.B) {
			box, err := sandbox.Open(b.Context(), testConfig(mode))
			if err != nil {
				b.Skipf("NOT TESTED: this machine cannot have the sandbox %s: %v", mode, err)
			}
			c := sandbox.Command{Args: []string{"sh", "-c", "true"}, Workspace: workspace, Quota: sandbox.Quota{Bytes: 200 << 20, Items: 20_000}}
			for b.Loop() {
				if r, err := box.Run(context.Background(), c); err != nil || r.ExitCode != 0 {
					b.Fatalf("%+v, %v", r, err)
				}
			}
		})
	}
}
