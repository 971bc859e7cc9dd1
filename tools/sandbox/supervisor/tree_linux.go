package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A tree lists this process's children and all its descendants, by their process ids.
type tree struct {
	children []int
	all      []int
}

// descendants finds the descendants of this process. A process whose parent ends becomes a child of
// this one, so if this one has no children, it has no descendants.
func descendants() (tree, error) {
	below, err := childrenOf(os.Getpid())
	if errors.Is(err, fs.ErrNotExist) {
		return scanAll() // this kernel does not list children
	}
	if err != nil {
		return tree{}, err
	}
	t := tree{children: below, all: append([]int(nil), below...)}
	for i := 0; i < len(t.all); i++ {
		more, err := childrenOf(t.all[i])
		if err != nil {
			continue // it has ended
		}
		t.all = append(t.all, more...)
	}
	return t, nil
}

// childrenOf returns the children of all threads of a process.
func childrenOf(pid int) (children []int, err error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	for _, thread := range threads {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		if pid == os.Getpid() && err != nil {
			return nil, err
		}
		for field := range strings.FieldsSeq(string(raw)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, nil
}

// scanAll finds the descendants by reading every process on the machine.
func scanAll() (tree, error) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return tree{}, err
	}
	of := map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			of[parent] = append(of[parent], pid)
		}
	}
	t := tree{children: of[os.Getpid()]}
	t.all = append(t.all, t.children...)
	for i := 0; i < len(t.all); i++ {
		t.all = append(t.all, of[t.all[i]]...)
	}
	return t, nil
}

// readStat returns what the kernel tells about a process: its state, its parent and more; nil if
// the process is gone.
func readStat(pid int) (fields []string) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// Its name, in parentheses, may contain anything.
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
}

// parentOf returns the parent of a process; false if the process is gone.
func parentOf(pid int) (int, bool) {
	fields := readStat(pid)
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}

// hasEnded reports whether a process has ended, although its parent may not have been told yet.
func hasEnded(pid int) bool {
	fields := readStat(pid)
	return len(fields) == 0 || fields[0] == "Z" || fields[0] == "X"
}

// reap collects the exit codes of children that have ended, so that the kernel forgets them, except
// for own, which another goroutine waits for. It returns how many there were.
func reap(children []int, own int) (reaped int) {
	for _, pid := range children {
		if pid == own {
			continue
		}
		if of, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err == nil && of == pid { // otherwise the child is alive
			reaped++
		}
	}
	return reaped
}

// memoryOf returns how much memory these processes use, in bytes. It leaves out files that they
// map, because others may map them, too, and the system can drop them. Memory that several of the
// processes share counts for each.
func memoryOf(pids []int) (bytes int64) {
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(raw)) {
			name, value, _ := strings.Cut(line, ":")
			switch name {
			case "RssAnon", "RssShmem", "VmSwap":
				if kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64); err == nil {
					bytes += kb << 10
				}
			}
		}
	}
	return bytes
}

// tasksOf counts the processes and threads of a user; 0 if they cannot be listed.
func tasksOf(uid int) (tasks uint64) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue
		}
		info, err := name.Info()
		if err != nil {
			continue // it has ended
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if fields := readStat(pid); ok && int(owner.Uid) == uid && len(fields) > 17 {
			threads, _ := strconv.ParseUint(fields[17], 10, 64) // 0 where it is not a number
			tasks += threads
		}
	}
	return tasks
}
