package process

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory the process may use, as known when it is called: the
// lowest of Go's own limit (GOMEMLIMIT), the limits of its control groups, and what the system has
// available. It returns 0 if nothing is known, for example on systems other than Linux.
func Memory() int64 {
	return memory("/proc", "/sys/fs/cgroup", debug.SetMemoryLimit(-1)) // -1 only reads it
}

// memory does the work of Memory, given the folders of the system's files, and Go's limit, which is
// math.MaxInt64 if there is none.
func memory(proc, groups string, limit int64) int64 {
	least := limit
	if n := availableMemory(proc); n > 0 {
		least = min(least, n)
	}
	for line := range strings.Lines(read(proc, "self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) < 3 {
			continue
		}
		switch {
		case parts[1] == "": // version 2
			least = min(least, leastOf(groups, parts[2], "memory.max"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			least = min(least, leastOf(path.Join(groups, "memory"), parts[2], "memory.limit_in_bytes"))
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// availableMemory returns how much memory the system could give to programs without swapping; 0 if
// it doesn't say.
func availableMemory(proc string) int64 {
	for line := range strings.Lines(read(proc, "meminfo")) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}

// leastOf returns the lowest limit of a control group and those that contain it; math.MaxInt64 if
// there is none. In a container the path may name groups of the host that are not visible: then the
// container's own group is at the root.
func leastOf(root, group, file string) int64 {
	least := int64(math.MaxInt64)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		if n, err := strconv.ParseInt(strings.TrimSpace(read(root, group, file)), 10, 64); err == nil && n > 0 { // "max" means none
			least = min(least, n)
		}
		if group == "/" {
			return least
		}
	}
}

// read returns the content of a system file; "" if it cannot be read.
func read(parts ...string) string {
	raw, err := os.ReadFile(path.Join(parts...))
	if err != nil {
		return ""
	}
	return string(raw)
}
