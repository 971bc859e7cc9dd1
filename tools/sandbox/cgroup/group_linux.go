package cgroup

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// groupPrefix is the prefix of the names of groups.
const groupPrefix = "parley-command-"

// removeTime is how long killed processes may take to leave a group.
const removeTime = time.Second

// A Group is the control group in which one command runs.
type Group struct {
	in    Place
	parts []part // one for each hierarchy
}

// A part is a group in one hierarchy.
type part struct {
	folder
	parent string
	lock   *os.File // held as long as a process looks after the group
}

// Make makes a group with these limits.
func (p Place) Make(limits Limits) (_ *Group, err error) {
	g := &Group{in: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.Remove())
		}
	}()
	for _, in := range p.folders() {
		made, err := in.make()
		if err != nil {
			return nil, err
		}
		g.parts = append(g.parts, made)
	}
	for _, made := range g.parts {
		if made.parent == p.Pids.Path && limits.Tasks > 0 {
			if err := write(made.Path, "pids.max", strconv.Itoa(limits.Tasks)); err != nil {
				return nil, err
			}
		}
		if made.parent == p.Memory.Path && limits.Memory > 0 {
			if err := made.limitMemory(strconv.FormatInt(limits.Memory, 10)); err != nil {
				return nil, err
			}
		}
	}
	return g, nil
}

// folders returns the folders in which a group's parts are made.
func (p Place) folders() (all []folder) {
	for _, in := range []folder{p.Pids, p.Memory} {
		if in.Path != "" && !slices.Contains(all, in) {
			all = append(all, in)
		}
	}
	return all
}

// make makes a part of a group, and locks it. If another process considered the part left over and
// removed it before it was locked, make tries again.
func (f folder) make() (part, error) {
	for {
		dir, err := os.MkdirTemp(f.Path, groupPrefix)
		if err != nil {
			return part{}, err
		}
		made := part{folder: folder{dir, f.Unified}, parent: f.Path}
		if made.lock, err = lockGroup(dir); err == nil {
			if _, err = os.Stat(dir); err == nil {
				return made, nil
			}
			err = errors.Join(err, made.lock.Close())
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			return part{}, errors.Join(err, os.Remove(dir))
		}
	}
}

// lockGroup locks a group, unless somebody else has locked it.
func lockGroup(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// limitMemory limits the part's memory, and prevents it from being swapped.
func (p part) limitMemory(most string) error {
	if !p.Unified {
		err := write(p.Path, "memory.limit_in_bytes", most)
		if swap := write(p.Path, "memory.memsw.limit_in_bytes", most); !errors.Is(swap, fs.ErrNotExist) {
			err = errors.Join(err, swap)
		}
		return err
	}
	err := errors.Join(write(p.Path, "memory.max", most), write(p.Path, "memory.oom.group", "1"))
	if swap := write(p.Path, "memory.swap.max", "0"); !errors.Is(swap, fs.ErrNotExist) {
		err = errors.Join(err, swap)
	}
	return err
}

// Start starts a program in the group; none of its processes is outside the group at any time.
//
// In version 2 the kernel creates the process in the group. In version 1 a process is created in
// the group of the thread that starts it, so that thread joins the group and comes back: moving the
// program once it is running would wait for the whole machine, for ten milliseconds and more.
func (g *Group) Start(cmd *exec.Cmd) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	for _, p := range g.parts {
		if p.Unified {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(p.lock.Fd())
			continue
		}
		if err := write(p.Path, "tasks", "0"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, write(p.parent, "tasks", "0")) }()
	}
	return cmd.Start()
}

// Refused reports whether the group has refused processes or threads to the command, and whether
// the kernel has killed one of the group's processes because of its memory. What was refused
// because of Kill's own limit counts, too.
func (g *Group) Refused() (tasks, memory bool) {
	for _, p := range g.parts {
		tasks = tasks || p.hasEvent("pids.events", "max")
		if p.Unified {
			memory = memory || p.hasEvent("memory.events", "oom_kill")
		} else {
			memory = memory || p.hasEvent("memory.oom_control", "oom_kill")
		}
	}
	return tasks, memory
}

// hasEvent reports whether a file of the part counts at least one event of this name.
func (p part) hasEvent(file, what string) bool {
	raw, err := os.ReadFile(filepath.Join(p.Path, file))
	if err != nil {
		return false // the controller belongs to another part
	}
	for line := range strings.Lines(string(raw)) {
		if name, n, _ := strings.Cut(strings.TrimSpace(line), " "); name == what && n != "0" {
			return true
		}
	}
	return false
}

// Kill allows the group no more processes, and kills all that it contains. It reports whether there
// were any. Processes that were created in the meantime are killed by the next call.
func (g *Group) Kill() (some bool) {
	for _, p := range g.parts {
		some = p.kill() || some
	}
	return some
}

// kill kills the processes of a part, and reports whether there were any.
func (p part) kill() bool {
	_ = write(p.Path, "pids.max", "0") // the file is missing if the controller belongs to another part
	raw, err := os.ReadFile(filepath.Join(p.Path, "cgroup.procs"))
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return false
	}
	if p.Unified && write(p.Path, "cgroup.kill", "1") == nil {
		return true
	}
	for field := range strings.FieldsSeq(string(raw)) {
		// 0 is a process that cannot be seen from here; killing it would kill this process.
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 && pid != os.Getpid() {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have just ended
		}
	}
	return true
}

// Remove removes the group, which Kill has emptied. Sweep later removes what cannot be removed now.
func (g *Group) Remove() (err error) {
	for _, p := range g.parts {
		err = errors.Join(err, p.remove(), p.lock.Close())
	}
	g.parts = nil
	return err
}

// remove removes a part. A process that has ended may stay in the part for a moment.
func (p part) remove() error {
	for until := time.Now().Add(removeTime); ; time.Sleep(time.Millisecond) {
		err := unix.Rmdir(p.Path)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(until) {
			return &fs.PathError{Op: "rmdir", Path: p.Path, Err: err}
		}
	}
}

// Sweep kills and removes the groups of commands whose supervisor was killed: no process holds
// their lock.
func (p Place) Sweep() {
	for _, in := range p.folders() {
		in.sweepBelow()
	}
}

// sweepBelow sweeps the groups below a folder.
func (f folder) sweepBelow() {
	entries, err := os.ReadDir(f.Path)
	if err != nil {
		return // it is gone
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), groupPrefix) {
			_ = folder{filepath.Join(f.Path, e.Name()), f.Unified}.sweep() // it may be another user's
		}
	}
}

// sweep removes a group, unless a process holds its lock.
func (f folder) sweep() error {
	lock, err := lockGroup(f.Path)
	if err != nil {
		return err
	}
	f.sweepBelow() // the command may have been this program, with groups of its own
	p := part{folder: f, lock: lock}
	for until := time.Now().Add(removeTime); p.kill() && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	return errors.Join(p.remove(), lock.Close())
}
