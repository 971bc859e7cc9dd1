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

// prefix begins the names of groups.
const groupPrefix = "parley-command-"

// removeTime is how long a group may take to be rid of processes that have ended.
const removeTime = time.Second

// A Group is the control group of one command.
type Group struct {
	in    Place
	parts []part // one for each hierarchy
}

// A part is a group in one hierarchy.
type part struct {
	folder
	parent string
	lock   *os.File // held as long as somebody looks after the group
}

// Make makes a group.
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

// folders are where the parts of a group are made.
func (p Place) folders() (all []folder) {
	for _, in := range []folder{p.Pids, p.Memory} {
		if in.Path != "" && !slices.Contains(all, in) {
			all = append(all, in)
		}
	}
	return all
}

// make makes a part, and locks it. Between the two somebody may have taken it for
// one that is left over, and have removed it.
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

// hold locks a group, if nobody does.
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

// limitMemory bounds memory, of which none is swapped.
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

// Start starts a program inside: no process of it is ever outside.
//
// In version 2 the kernel makes it there. In version 1 it is where the thread is that
// starts it, which goes there and comes back: to move the program once it runs would
// wait for the whole machine, for ten milliseconds and more.
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

// Refused tells whether the group was refused processes or threads, and whether the
// kernel has ended a process of it for its memory. What it was refused by Kill counts.
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

// counted tells whether something has happened that a file counts.
func (p part) hasEvent(file, what string) bool {
	raw, err := os.ReadFile(filepath.Join(p.Path, file))
	if err != nil {
		return false // the controller is another part's
	}
	for line := range strings.Lines(string(raw)) {
		if name, n, _ := strings.Cut(strings.TrimSpace(line), " "); name == what && n != "0" {
			return true
		}
	}
	return false
}

// Kill lets the group have no more processes, and ends all that it has: it tells
// whether there were any. Those that came meanwhile are ended by the next call.
func (g *Group) Kill() (some bool) {
	for _, p := range g.parts {
		some = p.kill() || some
	}
	return some
}

// kill tells whether there was anything to be ended.
func (p part) kill() bool {
	_ = write(p.Path, "pids.max", "0") // where the controller is another part's there is no such file
	raw, err := os.ReadFile(filepath.Join(p.Path, "cgroup.procs"))
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return false
	}
	if p.Unified && write(p.Path, "cgroup.kill", "1") == nil {
		return true
	}
	for field := range strings.FieldsSeq(string(raw)) {
		// 0 is a process that is not seen from here, or would be ourselves.
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 && pid != os.Getpid() {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended just now
		}
	}
	return true
}

// Remove removes the group, which Kill has emptied. What cannot be removed is left to
// Sweep.
func (g *Group) Remove() (err error) {
	for _, p := range g.parts {
		err = errors.Join(err, p.remove(), p.lock.Close())
	}
	g.parts = nil
	return err
}

// remove removes a part. A process that has ended may be in it for a moment more.
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

// Sweep ends and removes the groups that nobody looks after, because their processes
// were killed.
func (p Place) Sweep() {
	for _, in := range p.folders() {
		in.sweepBelow()
	}
}

// sweepBelow removes the groups below one.
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

// sweep removes a group, unless somebody looks after it.
func (f folder) sweep() error {
	lock, err := lockGroup(f.Path)
	if err != nil {
		return err
	}
	f.sweepBelow() // a command may have been this program
	p := part{folder: f, lock: lock}
	for until := time.Now().Add(removeTime); p.kill() && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	return errors.Join(p.remove(), lock.Close())
}
