package supervisor

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A workspace is the folder that the command works in, with its quota.
type workspace struct {
	request     *Request
	usageBefore usage // what it contained before the command
}

// open opens the workspace. It returns errReplaced if that is a different folder than the one for which the command's
// user was chosen: this process may be root, and must not give that user another person's folder.
func (w *workspace) open(how int) (int, error) {
	if w.request.Folder != (FolderID{}) {
		how |= unix.O_NOFOLLOW // openPlacesToUser has resolved the path
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

// needsTidying reports whether the workspace is cleaned up before and after the command.
func (w *workspace) needsTidying() bool {
	return w.request.Workspace != "" && !w.request.Personal && (w.request.UID > 0 || w.request.Quota != Quota{})
}

// tidy cleans up the workspace, returns how much it then contains, and reports whether something was removed because it
// was too deep.
//
// It gives root's files to the user that the command runs as, who otherwise could not work with them. Root made them
// when running an earlier release, or another process. It doesn't give away a file that has a second name, which may be
// outside. It removes the mode bits by which others run files with their owner's rights. It removes folders that are
// too deep, because the workspace could no longer be measured, and no command would run in it again.
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
	t.visit, t.onTooDeep = t.tidyItem, t.remove
	inside, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return usage{}, false, err
	}
	if err := t.walkOpen(os.NewFile(uintptr(inside), w.request.Workspace), 0); err != nil {
		return t.usage, t.removedTooDeep, err
	}
	if st.Uid == 0 && t.uid > 0 { // last, because the user owns the workspace only when everything was given away
		err = unix.Fchown(fd, t.uid, t.gid)
	}
	return t.usage, t.removedTooDeep, err
}

// tidyAfter cleans up the workspace when the command has ended, and adds to the report which quota it exceeded.
func (w *workspace) tidyAfter(rep *Report) {
	var detail string
	switch {
	case rep.Killed == Lease: // a successor may be at work
	case w.needsTidying():
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

// measure measures the workspace, and says which quota it exceeds; "" if none.
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

// overQuotaText says which quota the workspace, with its present content, exceeds; "" if none. err says why it could
// not be measured. If it exceeded a quota before the command, the command is only ended if it adds to that, because it
// may be there to remove something.
func (w *workspace) overQuotaText(now usage, err error) string {
	switch {
	case w.request.Quota == Quota{}:
		return ""
	case err != nil:
		return "the workspace cannot be measured: " + err.Error()
	case w.request.Quota.Bytes > 0 && now.bytes > max(w.request.Quota.Bytes, w.usageBefore.bytes):
		return fmt.Sprintf("the workspace held %d MB, at most %d are allowed", now.bytes>>20, w.request.Quota.Bytes>>20)
	case w.request.Quota.Items > 0 && now.items > max(w.request.Quota.Items, w.usageBefore.items):
		return fmt.Sprintf("the workspace held %d files and folders, at most %d are allowed", now.items, w.request.Quota.Items)
	}
	return ""
}
