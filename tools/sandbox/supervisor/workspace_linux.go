package supervisor

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A workspace is the folder that the command works in, with what it may hold.
type workspace struct {
	request    *Request
	heldBefore usage // what it held before the command
}

// open opens the workspace. It returns errReplaced if that is another folder than the one
// for which the command's user was chosen: this process may be root, and what it gives to that user
// must not be what somebody else has put there.
func (w *workspace) open(how int) (int, error) {
	if w.request.Folder != (FolderID{}) {
		how |= unix.O_NOFOLLOW // reveal has resolved the path
	}
	fd, err := unix.Open(w.request.Workspace, how|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return -1, errReplaced
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: w.request.Workspace, Err: err}
	}
	if err := w.request.Folder.check(fd); err != nil {
		closeFD(fd)
		return -1, err
	}
	return fd, nil
}

// tidies reports whether the workspace is put in order before and after the command.
func (w *workspace) tidies() bool {
	return w.request.Workspace != "" && !w.request.Personal && (w.request.UID > 0 || w.request.Quota != Quota{})
}

// tidy puts the workspace in order, returns how much it holds then, and reports whether something
// was removed because it lay in too many folders.
//
// What is root's is given to the user as whom the command runs, who could not work with it
// otherwise. Root made it as an earlier release, or as another process. No file is given
// away that has a second name, which may be outside. Files lose the bits by which others run them
// with their owner's rights. What lies so deep that the workspace could not be measured any more is
// removed, or no command would run in the workspace again.
func (w *workspace) tidy() (usage, bool, error) {
	fd, err := w.open(unix.O_RDONLY)
	if err != nil {
		return usage{}, false, err
	}
	defer closeFD(fd)
	t := &tidier{uid: w.request.UID, gid: w.request.GID, top: fd}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return usage{}, false, err
	}
	t.device = uint64(st.Dev)
	if t.mount, err = mountOf(fd); err != nil {
		return usage{}, false, err
	}
	t.visit, t.deep = t.tidyItem, t.remove
	inside, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return usage{}, false, err
	}
	if err := t.walkOpen(os.NewFile(uintptr(inside), w.request.Workspace), 0); err != nil {
		return t.usage, t.cut, err
	}
	if st.Uid == 0 && t.uid > 0 { // last, because it says that all is given
		err = unix.Fchown(fd, t.uid, t.gid)
	}
	return t.usage, t.cut, err
}

// tidyAfter puts the workspace in order when the command has ended, and adds to the report of what
// it held too much.
func (w *workspace) tidyAfter(rep *Report) {
	var detail string
	switch {
	case rep.Killed == Lease: // a successor may be at work
	case w.tidies():
		now, cut, err := w.tidy()
		if detail = w.overQuotaText(now, err); cut {
			rep.Detail = ""
			detail = fmt.Sprintf("its folders were nested more than %d deep, and what lay deeper was removed", maxDepth)
		}
	default:
		detail = w.measure()
	}
	if detail != "" && rep.Failure == "" && (rep.Killed == "" || rep.Killed == Disk && rep.Detail == "") {
		rep.Killed, rep.Detail = Disk, detail
	}
}

// measure measures the workspace, and says what it holds too much of; "" if nothing.
func (w *workspace) measure() string {
	if w.request.Quota == (Quota{}) {
		return ""
	}
	fd, err := w.open(unix.O_RDONLY)
	if err != nil {
		return w.overQuotaText(usage{}, err)
	}
	var all walk
	err = all.walkOpen(os.NewFile(uintptr(fd), w.request.Workspace), 0)
	return w.overQuotaText(all.usage, err)
}

// overQuotaText says what the workspace holds too much of; "" if nothing. If it held too much
// already before the command, the command is only ended if it adds to that, because it may be
// there to remove something.
func (w *workspace) overQuotaText(now usage, err error) string {
	switch {
	case w.request.Quota == Quota{}:
		return ""
	case err != nil:
		return "the workspace cannot be measured: " + err.Error()
	case w.request.Quota.Bytes > 0 && now.bytes > max(w.request.Quota.Bytes, w.heldBefore.bytes):
		return fmt.Sprintf("the workspace held %d MB, at most %d are allowed", now.bytes>>20, w.request.Quota.Bytes>>20)
	case w.request.Quota.Items > 0 && now.items > max(w.request.Quota.Items, w.heldBefore.items):
		return fmt.Sprintf("the workspace held %d files and folders, at most %d are allowed", now.items, w.request.Quota.Items)
	}
	return ""
}
