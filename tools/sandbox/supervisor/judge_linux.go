package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/seccomp"
)

// A judge decides about the command's system calls that change a file's mode or times, by its path or through an
// open file, for which Landlock has no rules: it makes the change itself if the command may write to the file, and
// refuses it otherwise.
type judge struct {
	from    *os.File            // the file over which the listener is sent
	uid     int                 // the user whose files may be changed
	actAs   *syscall.Credential // the user that the judge acts as, if this process is root; else nil
	view    *os.File            // the namespace in which the command sees this machine's files; nil if it is this process's own
	folders []string
}

// newJudge makes a judge for the supervisor's command. The command may change files in folders.
func (s *supervisor) newJudge(from *os.File, folders ...string) *judge {
	j := &judge{from: from, uid: s.UID, view: s.view}
	if s.UID < 0 {
		j.uid = os.Geteuid()
	} else {
		j.actAs = &syscall.Credential{Uid: uint32(s.UID), Gid: uint32(s.GID)}
	}
	for _, folder := range folders {
		if direct, err := filepath.EvalSymlinks(folder); err == nil {
			j.folders = append(j.folders, direct)
		}
	}
	return j
}

// A notification is struct seccomp_notif: a system call that waits for an answer.
type notification struct {
	id   uint64
	pid  uint32
	_    uint32
	call int32
	_    uint32
	_    uint64
	args [6]uint64
}

// A notifyResponse is struct seccomp_notif_resp: the answer to a notification.
type notifyResponse struct {
	id     uint64
	value  int64
	failed int32
	_      uint32
}

// run answers calls until no process of the command is left.
func (j *judge) run() {
	listener, err := receiveFile(j.from)
	if err != nil {
		return // the command was not run, and its standard error says why
	}
	defer func() { _ = listener.Close() }() // no call waits for an answer any longer
	if j.actAs != nil && j.becomeUser() != nil {
		return // each waiting call fails
	}
	fd := int(listener.Fd())
	for {
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(events, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if events[0].Revents&unix.POLLIN == 0 {
			return
		}
		var call notification
		if err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&call)); err != nil {
			continue // the process has ended in the meantime
		}
		answer := notifyResponse{id: call.id}
		if err := j.applyChange(fd, &call); err != nil {
			number, ok := errors.AsType[syscall.Errno](err)
			if !ok {
				number = unix.EPERM
			}
			answer.failed = -int32(number)
		}
		_ = ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer)) // it may have ended
	}
}

// becomeUser switches this thread, which ends with its goroutine, to the command's user. Then it can read the
// command's memory even if root may not read that of other users, finds files where the command finds them, and can
// change only what the command could change.
func (j *judge) becomeUser() error {
	runtime.LockOSThread()
	if j.view != nil {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		if err := unix.Setns(int(j.view.Fd()), unix.CLONE_NEWNS); err != nil {
			return err
		}
	}
	uid, gid := uintptr(j.actAs.Uid), uintptr(j.actAs.Gid)
	for _, call := range [][4]uintptr{{unix.SYS_SETGROUPS}, {unix.SYS_SETRESGID, gid, gid, gid}, {unix.SYS_SETRESUID, uid, uid, uid}} {
		// Package syscall would switch all threads.
		if _, _, failed := unix.RawSyscall(call[0], call[1], call[2], call[3]); failed != 0 {
			return failed
		}
	}
	return nil
}

// ioctl makes the system call ioctl.
func ioctl(fd int, what uint, with unsafe.Pointer) error {
	if _, _, failed := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(what), uintptr(with)); failed != 0 {
		return failed
	}
	return nil
}

// A fileChange is a change of a file's mode or times that a call asks for.
type fileChange struct {
	mode     bool // whether the mode is to change; otherwise the times are
	dir      int
	path     uint64
	open     bool // whether dir is the file itself, and there is no path
	noFollow bool
	bits     uint32
	times    uint64 // 0 means now
}

// decodeCall returns the change that a system call asks for; the error is unix.ENOSYS for any other system call.
func decodeCall(call *notification) (fileChange, error) {
	a := &call.args
	switch call.call {
	case seccomp.Chmod:
		return fileChange{mode: true, dir: unix.AT_FDCWD, path: a[0], bits: uint32(a[1])}, nil
	case unix.SYS_FCHMOD:
		return fileChange{mode: true, dir: int(int32(a[0])), open: true, bits: uint32(a[1])}, nil
	case unix.SYS_FCHMODAT:
		return fileChange{mode: true, dir: int(int32(a[0])), path: a[1], bits: uint32(a[2])}, nil
	case unix.SYS_FCHMODAT2:
		return fileChange{mode: true, dir: int(int32(a[0])), path: a[1], bits: uint32(a[2]), noFollow: a[3]&unix.AT_SYMLINK_NOFOLLOW != 0}, nil
	case unix.SYS_UTIMENSAT:
		return fileChange{dir: int(int32(a[0])), path: a[1], open: a[1] == 0, times: a[2], noFollow: a[3]&unix.AT_SYMLINK_NOFOLLOW != 0}, nil
	}
	return fileChange{}, unix.ENOSYS
}

// applyChange makes the change that a system call asks for, if it is allowed; otherwise it returns the error for
// the call.
func (j *judge) applyChange(listener int, call *notification) error {
	act, err := decodeCall(call)
	if err != nil {
		return err
	}
	name := ""
	if !act.open {
		if name, err = readText(int(call.pid), act.path); err != nil {
			return err
		}
	}
	var times []unix.Timespec
	if !act.mode && act.times != 0 {
		if times, err = readTimespecs(int(call.pid), act.times); err != nil {
			return err
		}
	}
	var file int
	if act.open {
		file, err = openDescriptor(int(call.pid), act.dir)
	} else {
		file, err = openPath(int(call.pid), act.dir, name, act.noFollow)
	}
	if err != nil {
		return err
	}
	defer closeFD(file)
	// Only now is it certain that the opened process is the one that made the call.
	if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&call.id)); err != nil {
		return err
	}
	itself := fmt.Sprintf("/proc/self/fd/%d", file)
	if err := j.mayChange(file, itself); err != nil {
		return err
	}
	switch {
	case act.mode && act.bits&(unix.S_ISUID|unix.S_ISGID) != 0:
		return unix.EPERM
	case act.mode:
		return unix.Chmod(itself, act.bits&0o1777)
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, itself, times, 0)
}

// mayChange returns nil if the command may write to a file, and otherwise the error for its call.
func (j *judge) mayChange(file int, itself string) error {
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil {
		return err
	}
	if int(st.Uid) != j.uid || st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.EPERM
	}
	at, err := os.Readlink(itself)
	if err != nil {
		return err
	}
	for _, folder := range j.folders {
		if at == folder || strings.HasPrefix(at, folder+"/") {
			return nil
		}
	}
	return unix.EPERM
}

// openDescriptor opens the file that a process has open under a number, as a path only.
func openDescriptor(pid, number int) (int, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/fd/%d", pid, number), unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		err = unix.EBADF
	}
	return fd, err
}

// openPath finds the file that a process names, relative to the process's current folder or to an open one. It
// opens the file as a path only, without the right to read it.
func openPath(pid, dir int, name string, noFollow bool) (int, error) {
	base := fmt.Sprintf("/proc/%d/cwd", pid)
	if dir != unix.AT_FDCWD {
		base = fmt.Sprintf("/proc/%d/fd/%d", pid, dir)
	}
	if name == "" {
		return -1, unix.ENOENT
	}
	from, err := unix.Open(base, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer closeFD(from)
	how := unix.O_PATH | unix.O_CLOEXEC
	if noFollow {
		how |= unix.O_NOFOLLOW
	}
	return unix.Openat(from, name, how, 0)
}

// readText reads a NUL-terminated text from a process's memory; it fails if the text is longer than a path can be.
func readText(pid int, at uint64) (string, error) {
	text := make([]byte, 0, unix.PathMax)
	for len(text) < unix.PathMax {
		// The page after this one may not be mapped.
		part := make([]byte, min(uint64(unix.PathMax-len(text)), 4096-(at+uint64(len(text)))%4096))
		n, err := readMemory(pid, at+uint64(len(text)), part)
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(part[:n], 0); end >= 0 {
			return string(append(text, part[:end]...)), nil
		}
		text = append(text, part[:n]...)
	}
	return "", unix.ENAMETOOLONG
}

// readMemory reads memory of a process, and returns how many bytes it has read, which may be fewer than fit; it fails
// if there are none.
func readMemory(pid int, at uint64, into []byte) (int, error) {
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(into)}}, 0)
	if err == nil && n == 0 {
		err = unix.EFAULT
	}
	return n, err
}

// readTimespecs reads the two times of a call from the process's memory.
func readTimespecs(pid int, at uint64) ([]unix.Timespec, error) {
	raw := make([]byte, int(unsafe.Sizeof(unix.Timespec{}))*2)
	if n, err := readMemory(pid, at, raw); err != nil || n < len(raw) {
		return nil, errors.Join(err, unix.EFAULT)
	}
	return (*[2]unix.Timespec)(unsafe.Pointer(&raw[0]))[:], nil
}
