package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// errRoot is the error for a command that would run as root.
var errRoot = errors.New("a command never runs as root")

// checkUser returns an error if the command would run as root.
func (s *supervisor) checkUser() error {
	if os.Geteuid() == 0 && (s.UID <= 0 || s.GID <= 0) {
		return errRoot
	}
	return nil
}

// neededRights returns the capabilities that root needs to run commands as another user: to become
// that user, to give a workspace to them and still work in it, and to end what they run.
func neededRights() map[string]int {
	return map[string]int{
		"CAP_SETUID": unix.CAP_SETUID, "CAP_SETGID": unix.CAP_SETGID, "CAP_CHOWN": unix.CAP_CHOWN,
		"CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "CAP_FOWNER": unix.CAP_FOWNER, "CAP_KILL": unix.CAP_KILL,
	}
}

// CheckRights returns an error if this process is root and cannot run commands as the user
// CommandUser, given the program that supervises them.
func CheckRights(program string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return err
	}
	var lacking []string
	for name, right := range neededRights() {
		if has[right/32].Effective&(1<<(right%32)) == 0 {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) > 0 {
		slices.Sort(lacking)
		return fmt.Errorf("a command never runs as root, and root cannot run it as another user here: it lacks %s", strings.Join(lacking, ", "))
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		if known, err := isMapped(file, CommandUser); err != nil || !known {
			return errors.Join(fmt.Errorf("a command never runs as root, and this user namespace has no other user %d", CommandUser), err)
		}
	}
	return checkProgram(program)
}

// isMapped reports whether a user namespace contains an id; the file contains the namespace's table
// of ids.
func isMapped(file string, id uint64) (bool, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		first, err := strconv.ParseUint(fields[0], 10, 64)
		count, more := strconv.ParseUint(fields[2], 10, 64)
		if err == nil && more == nil && first <= id && id-first < count {
			return true, nil
		}
	}
	return false, nil
}

// checkProgram returns an error if CommandUser may not run the program, which runs in the sandbox before some commands,
// and in place of others.
func checkProgram(program string) error {
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	const run = 0o005
	if info.Mode()&run == run {
		return nil
	}
	if program == ThisProgram {
		program, _ = os.Executable() // it only says which program it is
	}
	return fmt.Errorf("a command never runs as root, and other users may not run this program: chmod 755 %s", program)
}

// mayPass reports whether a user may pass through a folder with these attributes.
func mayPass(st *syscall.Stat_t, uid, gid int) bool {
	switch {
	case int(st.Uid) == uid:
		return st.Mode&0o100 != 0
	case int(st.Gid) == gid:
		return st.Mode&0o010 != 0
	}
	return st.Mode&0o001 != 0
}

// BlockedBy returns the first folder above a path that a user may not pass through; "" if there is
// none, or if a folder above cannot be examined. The path is absolute, and contains no symbolic
// links.
func BlockedBy(path string, uid, gid int) string {
	above := []string{}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		above = append(above, dir)
		if dir == filepath.Dir(dir) {
			break
		}
	}
	for _, dir := range slices.Backward(above) {
		info, err := os.Stat(dir)
		if err != nil {
			return "" // the path is made later, or opening it fails with an error
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && !mayPass(st, uid, gid) {
			return dir
		}
	}
	return ""
}

// A place is a file or folder on this machine that the command, or the process that starts it,
// opens as the command's user.
type place struct {
	path string
	view view
	// optional means that the command runs without it if necessary.
	optional bool
	folder   FolderID // which folder it must be; zero if it may be any
	fd       int      // opened before the path is covered
	dir      bool
}

// A view says how a place is made visible.
type view int

const (
	viewPlain      view = iota
	viewReadMapped      // root's files in it belong to the command's user, who can read them
	viewMapped          // root's files in it belong to the command's user
)

// openPlacesToUser lets the command's user reach the files and folders that the command needs, if root runs
// this program: folders above them, such as root's own home, may be closed to others, or they may
// belong to root themselves. In that case this thread gets its own view of the machine's files, in
// which each folder that is closed to the user is covered by an empty one that contains only the
// needed files. Whatever this thread starts has the same view.
func (s *supervisor) openPlacesToUser() error {
	if s.UID < 0 {
		return nil
	}
	if err := s.resolvePlaces(); err != nil {
		return err
	}
	if s.Workspace != "" {
		fd, err := s.workspace.open(unix.O_PATH)
		if err != nil {
			return err
		}
		closeFD(fd)
	}
	var hidden []place
	var covers []string
	needed := ""
	for _, p := range s.places() {
		blocked := BlockedBy(p.path, s.UID, s.GID)
		if blocked == "" && p.view == viewPlain {
			continue
		}
		if hidden = append(hidden, p); blocked != "" {
			covers = append(covers, blocked)
		}
		if !p.optional && blocked != "" {
			needed = blocked
		}
	}
	if len(hidden) == 0 {
		return nil
	}
	slices.Sort(covers)
	slices.SortStableFunc(hidden, func(a, b place) int { return strings.Compare(a.path, b.path) })
	err := s.showPlaces(hidden, slices.Compact(covers))
	switch {
	case err == nil:
		s.view, err = os.Open("/proc/thread-self/ns/mnt")
		return err
	case errors.Is(err, errReplaced):
		return err
	case s.Mapped && (errors.Is(err, errUnmapped) || errors.Is(err, unix.EPERM)):
		return fmt.Errorf("%w: %w", errUnmapped, err)
	case needed == "" && errors.Is(err, unix.EPERM):
		return nil // nothing was changed
	}
	return fmt.Errorf("%w: user %d may not go through %s, and root cannot show them what is below: %w", errUnreachable, s.UID, needed, err)
}

// resolvePlaces resolves the symbolic links in the paths of what the command needs, because its
// user may not be able to follow them.
func (s *supervisor) resolvePlaces() (err error) {
	if s.Workspace != "" {
		if s.Workspace, err = filepath.EvalSymlinks(s.Workspace); err != nil {
			return err
		}
	}
	for i := range s.ShownFolders {
		if s.ShownFolders[i].Path, err = filepath.EvalSymlinks(s.ShownFolders[i].Path); err != nil {
			return err
		}
	}
	return nil
}

// check returns errReplaced if an open folder is a different one; if f is zero, any folder is
// accepted.
func (f FolderID) check(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if f != (FolderID{}) && f != (FolderID{Dev: uint64(st.Dev), Ino: st.Ino}) {
		return errReplaced
	}
	return nil
}

// places returns what the command, or the process that starts it, opens as the command's user.
func (s *supervisor) places() (all []place) {
	if s.Workspace != "" {
		how := viewPlain
		if s.Mapped {
			how = viewMapped
		}
		all = append(all, place{path: s.Workspace, view: how, folder: s.Folder})
	}
	for _, shown := range s.ShownFolders {
		all = append(all, place{path: shown.Path, view: viewOf(shown.Path, 0)})
	}
	for _, name := range s.Read {
		for _, path := range resolveLinks(name) {
			all = append(all, place{path: path, view: viewOf(path, 0o005), optional: true})
		}
	}
	if s.Mode != Bubblewrap {
		return all
	}
	for _, path := range resolveLinks(s.Bwrap) {
		all = append(all, place{path: path})
	}
	if program, err := os.Executable(); err == nil { // it can be copied instead
		for _, path := range resolveLinks(program) {
			all = append(all, place{path: path, optional: true})
		}
	}
	return all
}

// viewOf returns how a file or folder that the command may read is made visible: viewReadMapped if it
// is root's and doesn't grant all users these rights.
func viewOf(path string, rights os.FileMode) view {
	info, err := os.Stat(path)
	if err != nil {
		return viewPlain
	}
	if !info.IsDir() {
		rights &= 0o004
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && st.Uid == 0 && (rights == 0 || info.Mode()&rights != rights) {
		return viewReadMapped
	}
	return viewPlain
}

// resolveLinks returns a path without symbolic links; none if there is nothing at the path.
func resolveLinks(path string) []string {
	straight, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	return []string{straight}
}

// mayOpen reports whether the command's user can reach a path.
func (s *supervisor) mayOpen(path string) bool {
	if s.UID < 0 || s.view != nil {
		return true
	}
	for _, straight := range resolveLinks(path) {
		return BlockedBy(straight, s.UID, s.GID) == ""
	}
	return false
}

// showPlaces covers folders for this thread, and makes the places visible at their paths.
func (s *supervisor) showPlaces(places []place, covers []string) (err error) {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("part the mounts: %s", err) //nolint:errorlint // by now something was changed
	}
	opened := 0
	defer func() {
		for _, p := range places[:opened] {
			closeFD(p.fd)
		}
	}()
	for i := range places {
		if err := places[i].open(s.UID, s.GID); err != nil {
			return &os.PathError{Op: "open", Path: places[i].path, Err: err}
		}
		opened++
	}
	return coverAndShow(places, covers)
}

// coverAndShow covers folders with empty ones, makes the places visible at their paths, and then
// makes the covers read-only. The places must have been opened (see open).
func coverAndShow(places []place, covers []string) error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	var covered []string
	for _, folder := range covers {
		if slices.ContainsFunc(covered, func(above string) bool { return strings.HasPrefix(folder, above+"/") }) {
			continue
		}
		if err := unix.Mount("tmpfs", folder, "tmpfs", flags, "mode=0755,size=1m"); err != nil {
			return &os.PathError{Op: "cover", Path: folder, Err: err}
		}
		covered = append(covered, folder)
	}
	for _, p := range places {
		if err := p.show(); err != nil {
			return &os.PathError{Op: "show", Path: p.path, Err: err}
		}
	}
	for _, folder := range covered {
		if err := unix.Mount("", folder, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, ""); err != nil {
			return &os.PathError{Op: "close", Path: folder, Err: err}
		}
	}
	return nil
}

// open opens the place, to be made visible to a user and a group.
func (p *place) open(uid, gid int) (err error) {
	if p.view != viewPlain {
		p.fd, err = openMapped(p.path, uid, gid, p.view == viewReadMapped)
		if err != nil && p.view == viewMapped {
			return fmt.Errorf("%w: %w", errUnmapped, err)
		}
		if err != nil {
			p.view = viewPlain // the command reads as much of it as its user may
		}
	}
	if p.view == viewPlain {
		if p.fd, err = unix.Open(p.path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
	}
	var st unix.Stat_t
	err = unix.Fstat(p.fd, &st)
	p.dir = st.Mode&unix.S_IFMT == unix.S_IFDIR
	if err = errors.Join(err, p.folder.check(p.fd)); err != nil {
		closeFD(p.fd)
	}
	return err
}

// show makes the place visible at its path, which may be in a folder that is covered by now.
func (p *place) show() error {
	folder := p.path
	if !p.dir {
		folder = filepath.Dir(p.path)
	}
	if err := makePassable(folder); err != nil {
		return err
	}
	if !p.dir {
		f, err := os.OpenFile(p.path, os.O_CREATE|os.O_RDONLY, 0o600)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if p.view != viewPlain {
		return unix.MoveMount(p.fd, "", unix.AT_FDCWD, p.path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", p.fd), p.path, "", unix.MS_BIND|unix.MS_REC, "")
}

// makePassable makes a folder and its parents, if they are missing, so that everybody can pass
// through them.
func makePassable(folder string) error {
	if _, err := os.Lstat(folder); err == nil {
		return nil
	}
	if err := makePassable(filepath.Dir(folder)); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	return os.Chmod(folder, 0o755) // regardless of the umask
}
