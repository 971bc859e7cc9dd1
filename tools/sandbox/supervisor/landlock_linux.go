package supervisor

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/landlock-lsm/go-landlock/landlock"
	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"parley/tools/plainjson"
	"parley/tools/sandbox/seccomp"
)

// MinABI is the first version of Landlock that keeps a process from sending signals to processes outside, and from
// connecting to their abstract sockets.
const MinABI = 6

// LandlockVersion returns the kernel's version of Landlock; it fails if the kernel has no Landlock.
func LandlockVersion() (int, error) { return landlocksys.LandlockGetABIVersion() }

// landlockRules describe the restrictions of a process that shares its namespaces with others.
type landlockRules struct {
	Read, ReadFiles []string
	Write           []string
	WriteIf         *folderID // also writable, if the folder at its path is still this one
	Devices         []string
	Tasks           uint64 // limit for this user's processes and threads, including this program's; 0 means none
	Listener        string // the file descriptor over which to send the listener for the calls that the judge decides; "" means none
}

// writableDir returns the directory that the command may write to, besides its temporary one, and the command's
// environment.
func (s *supervisor) writableDir(tmp string) (dir string, env []string, err error) {
	env = append(slices.Clone(s.Env), "HOME="+tmp, "TMPDIR="+tmp)
	for _, shown := range s.ShownFolders {
		if shown.Env != "" {
			env = append(env, shown.Env+"="+shown.Path)
		}
	}
	switch {
	case s.ReadOnly:
		return tmp, env, nil
	case s.writes == nil:
		return cmp.Or(s.Workspace, tmp), env, nil
	}
	dir, err = os.Readlink(fdPath(s.writes))
	env = append(env, writableDirVariable+"="+dir)
	if s.WritesAll {
		dir = s.Workspace
	}
	return dir, env, err
}

// startWithoutNamespaces starts the command without namespaces of its own: in the mode Landlock its first process
// restricts itself, in the mode None there are no restrictions.
func (s *supervisor) startWithoutNamespaces() (_ *child, err error) {
	temporary, err := NewTemporary(s.UID, s.GID)
	if err != nil {
		return nil, err
	}
	tmp := temporary.Path
	c := &child{tmp: tmp, exitCode: exitCode, close: temporary.Remove}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	mayWrite, env, err := s.writableDir(tmp)
	if err != nil {
		return nil, err
	}
	e := enterRequest{Args: s.Args, Env: env, Plain: s.UID > 0, Bare: s.Mode == None}
	if s.OwnProgram {
		e.Args = append([]string{ThisProgram}, s.Args...)
	}
	var pipes pipes
	defer func() { err = errors.Join(err, pipes.closeAll()) }()
	var judge *judge
	if s.Mode == Landlock {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		judge = s.newJudge(os.NewFile(uintptr(pair[0]), "listener"), mayWrite, tmp)
		if e.Walls, err = s.landlockRules(tmp); err != nil {
			return nil, err
		}
		e.Walls.Listener = pipes.addFile(os.NewFile(uintptr(pair[1]), "listener"))
	}
	raw, err := plainjson.Marshal(e)
	if err != nil {
		return nil, err
	}
	told, err := pipes.addText(raw)
	if err != nil {
		return nil, err
	}
	c.cmd = exec.Command(ThisProgram, enterCommand, told) //nolint:noctx // attend ends it
	c.cmd.Env = []string{"PATH=" + Path}                  // used to find the program
	c.cmd.Dir = filepath.Join(cmp.Or(s.Workspace, tmp), s.Dir)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.cmd.ExtraFiles = pipes.childFiles
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL, Credential: s.credential()}
	if err := s.group.start(c.cmd); err != nil {
		return nil, err
	}
	if judge != nil {
		go judge.run()
	}
	if s.Mode == None && s.group == nil { // Landlock's restrictions include a limit of their own
		return c, s.limitTasks(c.cmd.Process.Pid, s.otherTasks())
	}
	return c, nil
}

// otherTasks counts the processes and threads that count toward the command's limit although they are not its own,
// because they belong to the same user.
func (s *supervisor) otherTasks() uint64 { return tasksOf(max(s.UID, os.Geteuid())) }

// landlockRules returns the restrictions for the command; tmp is its folder for temporary files.
func (s *supervisor) landlockRules(tmp string) (_ *landlockRules, err error) {
	w := &landlockRules{
		Read:    append([]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}, s.Read...),
		Write:   []string{cmp.Or(s.Workspace, tmp), tmp},
		Devices: []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"},
	}
	for _, shown := range s.ShownFolders {
		w.Read = append(w.Read, shown.Path)
	}
	if s.ReadOnly {
		w.Write, w.Read = []string{tmp}, append(w.Read, s.Workspace)
	}
	if s.writes != nil {
		if !s.WritesAll {
			w.Write, w.Read = []string{tmp}, append(w.Read, s.Workspace)
		}
		path, err := os.Readlink(fdPath(s.writes))
		if err == nil {
			w.WriteIf, err = folderIDOf(s.writes, path)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range etcFiles(false) {
		if info, err := os.Stat(name); err == nil && !info.IsDir() {
			w.ReadFiles = append(w.ReadFiles, name)
		} else if err == nil {
			w.Read = append(w.Read, name)
		}
	}
	w.ReadFiles = append(w.ReadFiles, "/etc/passwd", "/etc/group") // names and numbers; no secret
	if s.OwnProgram {
		w.ReadFiles = append(w.ReadFiles, ThisProgram)
	}
	if s.Processes > 0 && s.group == nil {
		w.Tasks = uint64(s.Processes)*threadsPerProcess + s.otherTasks()
	}
	return w, nil
}

// enforce restricts this thread, which is about to become the command.
func (w *landlockRules) enforce() error {
	if err := preferForOOMKill(os.Getpid()); err != nil {
		return err
	}
	if w.Tasks > 0 {
		if err := lowerLimit(unix.RLIMIT_NPROC, w.Tasks); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	existing := func(paths []string) []string {
		return slices.DeleteFunc(paths, func(p string) bool {
			_, err := os.Stat(p)
			return err != nil
		})
	}
	if w.WriteIf != nil {
		f, err := w.WriteIf.open()
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only checked
		w.Write = append(w.Write, fdPath(f))
	}
	// All of V6 is needed: BestEffort would put up less without reporting it.
	err := landlock.V6.Restrict(
		landlock.RODirs(existing(w.Read)...), landlock.ROFiles(existing(w.ReadFiles)...),
		landlock.RWDirs(w.Write...).WithRefer(), landlock.RWFiles(existing(w.Devices)...))
	if err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return w.filterCalls()
}

// dropCapabilities removes all capabilities from this thread, so that it keeps none of root's special rights.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EPERM) {
			break // a process without capabilities need not drop any
		}
		if err != nil && !errors.Is(err, unix.EINVAL) { // an older kernel has fewer
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has, none [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil || has == none {
		return err
	}
	return unix.Capset(&header, &none[0])
}

// filterSetIDs keeps this thread, which is about to become a command without restrictions, from setting the set-ID
// bits. If there is no filter for this architecture, it returns an error only if the command could make files that
// belong to root.
func filterSetIDs(plain bool) error {
	program := seccomp.Program(seccomp.Bare)
	switch {
	case len(program) == 0 && plain:
		return seccomp.ErrArchitecture
	case len(program) == 0:
		return nil
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&filter))); failed != 0 {
		return failed
	}
	return nil
}

// filterCalls adds the last restriction, the filter of system calls. It sends the listener, through which the judge
// receives the calls that it decides, to the supervisor.
func (w *landlockRules) filterCalls() error {
	number, err := strconv.Atoi(w.Listener)
	if err != nil {
		return err
	}
	program := seccomp.Program(seccomp.Closed)
	if len(program) == 0 {
		return seccomp.ErrArchitecture
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&filter)))
	if failed != 0 {
		return failed
	}
	err = unix.Sendmsg(number, []byte{0}, unix.UnixRights(int(fd)), nil, 0)
	return errors.Join(err, unix.Close(int(fd)), unix.Close(number))
}
