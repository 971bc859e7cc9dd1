package process

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The least limit counts, whoever has set it.
func TestTheLeastLimitCounts(t *testing.T) {
	const none = math.MaxInt64
	const meminfo = "MemTotal:       16000000 kB\nMemFree:          100000 kB\nMemAvailable:    8000000 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		limit int64
		want  int64
	}{
		"nothing is known":        {nil, none, 0},
		"what is available":       {map[string]string{"proc/meminfo": meminfo}, none, 8000000 << 10},
		"GOMEMLIMIT":              {map[string]string{"proc/meminfo": meminfo}, 100 << 20, 100 << 20},
		"a control group":         {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "groups/a/b/memory.max": "536870912\n"}, none, 512 << 20},
		"one further up":          {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "groups/a/b/memory.max": "max\n", "groups/a/memory.max": "1048576\n"}, none, 1 << 20},
		"that of a container":     {map[string]string{"proc/self/cgroup": "0::/host/only\n", "groups/memory.max": "1048576\n"}, none, 1 << 20},
		"groups of version 1":     {map[string]string{"proc/self/cgroup": "4:cpu,memory:/x\n0::/\n", "groups/memory/x/memory.limit_in_bytes": "2097152\n"}, none, 2 << 20},
		"groups without a limit":  {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "groups/memory.max": "max\n"}, none, 8000000 << 10},
		"files nobody can decode": {map[string]string{"proc/meminfo": "MemAvailable: many kB\n", "proc/self/cgroup": "x\n"}, none, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				file = filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := memory(filepath.Join(dir, "proc"), filepath.Join(dir, "groups"), c.limit); got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
		})
	}
}

func TestLinuxSaysHowMuchThereIs(t *testing.T) {
	if got := Memory(); runtime.GOOS == "linux" && (got < 1<<20 || got > 1<<50) {
		t.Errorf("%d bytes", got)
	}
}
