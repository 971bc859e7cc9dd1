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

// A tree is what has come of this process.
type tree struct {
	children []int
	all      []int
}

// descendants finds the processes that have come of this one. A process that is
// alive has only living parents up to this one, or was handed over to it: where no
// child is found there is nothing below.
func descendants() (tree, error) {
	below, err := childrenOf(os.Getpid())
	if errors.Is(err, fs.ErrNotExist) {
		return scanAll() // a kernel that does not list children
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

// childrenOf lists the children of all threads of a process.
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

// scan finds the descendants by looking at every process of the machine.
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

// stat is what a process is: its state, and its parent.
func readStat(pid int) (fields []string) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// Its name, in brackets, may hold anything.
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
}

func parentOf(pid int) (int, bool) {
	fields := readStat(pid)
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}

// ended tells whether a process does nothing any more.
func hasEnded(pid int) bool {
	fields := readStat(pid)
	return len(fields) == 0 || fields[0] == "Z" || fields[0] == "X"
}

// reap takes away the children that have ended, but for the one that is waited
// for elsewhere, and tells how many there were.
func reap(children []int, own int) (reaped int) {
	for _, pid := range children {
		if pid == own {
			continue
		}
		if of, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err == nil && of == pid { // else it is alive
			reaped++
		}
	}
	return reaped
}

// memoryOf sums what processes take of memory that is theirs: not what they map of
// files, which many share and the system can drop.
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

// tasksOf counts the processes and threads of a user.
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
