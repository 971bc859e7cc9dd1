package supervisor

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// openMapped opens a view of a directory in which root's files belong to a user and a group: the files that this
// user makes there actually belong to root. It needs a filesystem that supports this, and the right to mount. In
// the view no file is a device, and no program runs with its owner's rights; if readOnly is set, nothing can be
// written there.
func openMapped(dir string, uid, gid int, readOnly bool) (fd int, err error) {
	users, err := newMapping(uid, gid)
	if err != nil {
		return -1, err
	}
	defer func() { _ = users.Close() }() // the view keeps what it needs of the namespace
	fd, err = unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return -1, err
	}
	set := uint64(unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if readOnly {
		set |= unix.MOUNT_ATTR_RDONLY
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: set, Userns_fd: uint64(users.Fd()),
	})
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// CheckIDMapping returns an error if root cannot let another user work in a directory that belongs to root.
func CheckIDMapping(dir string) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // newMapping requires that
		defer runtime.UnlockOSThread()
		fd, err := openMapped(dir, CommandUser, CommandUser, false)
		if err == nil {
			err = unix.Close(fd)
		}
		ended <- err
	}()
	return <-ended
}

// newMapping returns a user namespace whose root is a user and a group of this machine, and in which everybody else
// is who they are outside. This thread must be locked.
func newMapping(uid, gid int) (*os.File, error) {
	whole := func(id int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{
			{ContainerID: 0, HostID: id, Size: 1}, {ContainerID: 1, HostID: 1, Size: id - 1},
			{ContainerID: id + 1, HostID: id + 1, Size: math.MaxUint16 - id},
		}
	}
	f, err := startMapping(whole(uid), whole(gid))
	if err != nil { // in a user namespace, not all of them may exist
		f, err = startMapping(whole(uid)[:1], whole(gid)[:1])
	}
	return f, err
}

// startMapping makes a user namespace: it starts a process there, which stops before its first instruction, and
// then ends it.
func startMapping(users, groups []syscall.SysProcIDMap) (_ *os.File, err error) {
	cmd := exec.Command(ThisProgram) //nolint:noctx // it never runs
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, UidMappings: users, GidMappings: groups, Ptrace: true, Pdeathsig: unix.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Kill() // it doesn't matter if it has already ended
		_ = cmd.Wait()
	}()
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
}
