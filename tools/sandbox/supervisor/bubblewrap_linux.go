package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"parley/tools/plainjson"
	"parley/tools/sandbox/seccomp"
)

// programInside is the path of this program inside the sandbox, for commands that need it to reach the network
// through a proxy.
const programInside = "/run/parley"

// threadsPerProcess is how many threads are allowed for each allowed process: the kernel's limit counts threads, and
// many programs start several.
const threadsPerProcess = 8

// startBubblewrap starts the command in namespaces of its own. Before its first instruction, the command waits until
// its limits are set from here: the limit of processes counts only the command's processes after bubblewrap has made
// the namespaces.
func (s *supervisor) startBubblewrap() (_ *child, err error) {
	var pipes pipes
	defer func() { err = errors.Join(err, pipes.closeAll()) }()
	status, statusEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	wait, release, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &child{extraProcesses: 2, close: func() error { return nil }}
	args, err := s.bubblewrapLine(c, &pipes, []string{"--json-status-fd", pipes.addFile(statusEnd), "--block-fd", pipes.addFile(wait)})
	if err != nil {
		return nil, err
	}
	c.cmd = exec.Command(s.Bwrap, args...) //nolint:noctx // attend ends it
	c.cmd.Env = []string{}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.cmd.ExtraFiles = pipes.childFiles
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL, Credential: s.credential()}
	if err := s.group.start(c.cmd); err != nil {
		return nil, errors.Join(err, status.Close(), release.Close())
	}
	err = pipes.closeAll()
	words := json.NewDecoder(status)
	var first struct {
		Child int `json:"child-pid"`
	}
	if words.Decode(&first) == nil && first.Child > 0 {
		if s.group == nil {
			err = errors.Join(err, s.limitTasks(first.Child, 0))
		}
		err = errors.Join(err, preferForOOMKill(first.Child))
	}
	_, released := release.Write([]byte{1})
	if released != nil && !errors.Is(released, unix.EPIPE) { // the child has already ended, and reports why
		err = errors.Join(err, released)
	}
	c.exitCode = func(end error) (int, error) { return readExitCode(words, status, end) }
	return c, errors.Join(err, release.Close())
}

// bubblewrapLine adds the command and its restrictions to bubblewrap's arguments.
func (s *supervisor) bubblewrapLine(c *child, pipes *pipes, args []string) ([]string, error) {
	walls, err := s.bubblewrapArgs(pipes)
	if err != nil {
		return nil, err
	}
	args = append(args, walls...)
	command, err := s.command(pipes, &args)
	if err != nil {
		return nil, err
	}
	switch {
	case s.Proxied() && s.proxy == nil:
		err = errNoProxy
	case s.Proxied():
		command, err = s.connectToProxy(c, pipes, &args)
	case s.writes != nil:
		command, err = s.enterArgs(pipes, &args, enterRequest{})
	}
	if err != nil {
		return nil, err
	}
	return pipes.hideArgs(append(args, "--remount-ro", "/"), command)
}

// hideArgs returns bubblewrap's command line, given its arguments and the command's. It has bubblewrap read its
// arguments from a file: they say where the workspace is on this machine, and the command can read bubblewrap's
// command line.
func (p *pipes) hideArgs(args, command []string) ([]string, error) {
	number, err := p.addText([]byte(strings.Join(args, "\x00") + "\x00"))
	if err != nil {
		return nil, err
	}
	return append([]string{"--args", number, "--"}, command...), nil
}

// command returns the command line that bubblewrap runs inside the sandbox. It adds to args the arguments that
// bubblewrap needs for that.
func (s *supervisor) command(pipes *pipes, args *[]string) ([]string, error) {
	switch {
	case s.OwnProgram:
		return append([]string{programInside}, s.Args...), s.mountProgram(pipes, args)
	case s.Args[0] == "sh":
		return s.Args, nil
	}
	// The shell reports a missing program, with the usual exit code.
	return append([]string{"sh", "-c", `exec "$0" "$@"`}, s.Args...), nil
}

// pipes are the files that a child gets besides standard input, output and error.
type pipes struct{ childFiles []*os.File }

// addFile adds a file, and returns the number, as text, of the file descriptor that it will have in the child.
func (p *pipes) addFile(f *os.File) string {
	p.childFiles = append(p.childFiles, f)
	return strconv.Itoa(2 + len(p.childFiles))
}

// addText adds a file that contains a text of any length, and returns its descriptor as addFile does. It uses a
// file in memory rather than a pipe: a pipe accepts some 64 KB and then waits for its reader, but the child that
// reads it is started only after everything was written.
func (p *pipes) addText(content []byte) (string, error) {
	fd, err := unix.MemfdCreate("request", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), "request")
	number := p.addFile(f)
	if _, err := f.Write(content); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	const sealed = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, sealed)
	return number, err
}

// mountProgram makes this program visible inside the sandbox as the file programInside. If its file was replaced
// since this program was started, it copies the program, because the path would lead to the other file. It does the
// same if the command's user cannot reach the path.
func (s *supervisor) mountProgram(p *pipes, args *[]string) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	here, err := os.Stat(ThisProgram)
	if err != nil {
		return err
	}
	if there, err := os.Stat(path); err == nil && os.SameFile(here, there) && s.mayOpen(path) {
		*args = append(*args, "--ro-bind", path, programInside)
		return nil
	}
	f, err := os.Open(ThisProgram)
	if err != nil {
		return err
	}
	*args = append(*args, "--perms", "0555", "--file", p.addFile(f), programInside)
	return nil
}

// closeAll closes this process's copies of the files.
func (p *pipes) closeAll() (err error) {
	for _, f := range p.childFiles {
		err = errors.Join(err, f.Close())
	}
	p.childFiles = nil
	return err
}

// readExitCode returns the command's exit code, which bubblewrap reports in JSON. If bubblewrap has reported none,
// it has not run the command, and readExitCode returns an error.
func readExitCode(words *json.Decoder, status io.Closer, end error) (int, error) {
	defer func() { _ = status.Close() }() // everything was read
	for {
		var word struct {
			Code *int `json:"exit-code"`
		}
		if err := words.Decode(&word); err != nil {
			break
		}
		if word.Code != nil {
			return *word.Code, nil
		}
	}
	if _, err := exitCode(end); err != nil {
		return -1, err
	}
	return -1, errSetup
}

// limitTasks limits how many processes and threads the user of the process pid may have in that process's
// namespace: as many as the command may have, plus others that are not the command's. The limit doesn't apply to
// root. If the request has no limit, or the process has already ended, limitTasks does nothing.
func (s *supervisor) limitTasks(pid int, others uint64) error {
	if s.Processes == 0 {
		return nil
	}
	most := uint64(s.Processes)*threadsPerProcess + others
	err := unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}, nil)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM) {
		return nil // the process has ended, or already had a lower limit
	}
	return err
}

// preferForOOMKill makes the kernel kill the command before any other process when the
// machine runs out of memory.
func preferForOOMKill(pid int) error {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ESRCH) {
		return nil // the process has ended, or the system allows this to nobody
	}
	return err
}

// credential returns the user that the command runs as; nil means the supervisor's own.
func (s *supervisor) credential() *syscall.Credential {
	if s.UID < 0 {
		return nil
	}
	return &syscall.Credential{Uid: uint32(s.UID), Gid: uint32(s.GID)}
}

// bubblewrapArgs returns the arguments for bubblewrap that determine what the command sees inside the sandbox.
func (s *supervisor) bubblewrapArgs(pipes *pipes) ([]string, error) {
	uid, gid := os.Getuid(), os.Getgid()
	if s.UID >= 0 {
		uid, gid = s.UID, s.GID
	}
	passwd, err := pipes.addText(fmt.Appendf(nil, "root:x:0:0:root:/:/bin/sh\nagent:x:%d:%d:agent:/tmp:/bin/sh\n", uid, gid))
	if err != nil {
		return nil, err
	}
	group, err := pipes.addText(fmt.Appendf(nil, "root:x:0:\nagent:x:%d:\n", gid))
	if err != nil {
		return nil, err
	}
	program, err := seccomp.Assemble(seccomp.Hardened)
	if err != nil {
		return nil, err
	}
	filter, err := pipes.addText(program)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
		"--cap-drop", "ALL", "--clearenv", "--seccomp", filter,
	}
	if s.FullNet {
		args = append(args, "--share-net")
	}
	for _, dir := range []string{"/etc", "/etc/ssl", "/run", "/var"} {
		args = append(args, "--perms", "0755", "--dir", dir)
	}
	args = append(args, systemArgs(s.FullNet)...)
	size := strconv.FormatInt(s.Tmp, 10)
	args = append(args,
		"--perms", "0644", "--file", passwd, "/etc/passwd", "--perms", "0644", "--file", group, "/etc/group",
		"--proc", "/proc")
	// bubblewrap itself covers what it finds to be writable, but doesn't find the files in /proc/sys.
	for _, name := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/pressure", "/proc/fs", "/proc/acpi", "/proc/scsi"} {
		args = append(args, "--ro-bind-try", name, name)
	}
	args = append(args, "--dev", "/dev",
		"--perms", "1777", "--size", size, "--tmpfs", "/dev/shm",
		"--perms", "1777", "--size", size, "--tmpfs", "/tmp", "--symlink", "../tmp", "/var/tmp",
		"--remount-ro", "/dev")
	for _, name := range s.Read {
		args = append(args, "--ro-bind-try", name, name)
	}
	places, dir := s.placeArgs()
	args = append(args, places...)
	args = append(args, "--chdir", dir, "--setenv", "HOME", "/tmp", "--setenv", "TMPDIR", "/tmp")
	for _, pair := range s.Env {
		name, value, _ := strings.Cut(pair, "=")
		args = append(args, "--setenv", name, value)
	}
	return args, nil
}

// placeArgs returns the arguments for bubblewrap that show a command its own folders: those that it reads, and its
// workspace. dir is the folder in which the command starts.
func (s *supervisor) placeArgs() (args []string, dir string) {
	for _, shown := range s.ShownFolders {
		args = append(args, "--ro-bind", shown.Path, shown.PathInside)
		if shown.Env != "" {
			args = append(args, "--setenv", shown.Env, shown.PathInside)
		}
	}
	dir = "/tmp"
	if s.Workspace != "" {
		how := "--bind"
		if s.ReadOnly {
			how = "--ro-bind"
		}
		if s.writes != nil {
			args = append(args, "--bind", filepath.Join(s.Workspace, s.WritableDir), writableInside, "--setenv", writableDirVariable, writableInside)
			if !s.WritesAll {
				how = "--ro-bind"
			}
		}
		args = append(args, how, s.Workspace, workspaceInside)
		dir = filepath.Join(workspaceInside, s.Dir)
	}
	return args, dir
}

// systemArgs returns the arguments for bubblewrap that show the command this machine's programs and what they need,
// read-only; net says that this includes what the network needs.
func systemArgs(net bool) (args []string) {
	args = []string{"--ro-bind", "/usr", "/usr"}
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		info, err := os.Lstat(name)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink == 0 {
			args = append(args, "--ro-bind", name, name)
			continue
		}
		if target, err := os.Readlink(name); err == nil {
			args = append(args, "--symlink", target, name)
		}
	}
	for _, name := range etcFiles(net) {
		args = append(args, "--ro-bind-try", name, name)
	}
	return args
}

// etcFiles returns the files in /etc that programs need and that contain no secret.
func etcFiles(net bool) []string {
	names := []string{
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/timezone",
		"/etc/nsswitch.conf", "/etc/protocols", "/etc/services", "/etc/mime.types", "/etc/magic", "/etc/terminfo", "/etc/inputrc",
		"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
		"/etc/python3", "/etc/fonts", "/etc/perl", "/etc/java-17-openjdk", "/etc/os-release",
	}
	if net {
		names = append(names, "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/gai.conf")
	}
	return names
}

// connectToProxy lets the command reach the allowed hosts, and no others: its namespace has no network, and its
// connections inside go to a socket that a proxy in this process serves.
func (s *supervisor) connectToProxy(c *child, pipes *pipes, args *[]string) ([]string, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "proxy"), os.NewFile(uintptr(pair[1]), "proxy")
	number := pipes.addFile(theirs)
	proxy := s.proxy(s.Hosts)
	c.refusedHosts = proxy.Refused
	c.close = proxy.Close
	go serveInside(ours, proxy)
	at := "http://" + insideProxy
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"} {
		*args = append(*args, "--setenv", name, at)
	}
	*args = append(*args, "--setenv", "NODE_USE_ENV_PROXY", "1")
	return s.enterArgs(pipes, args, enterRequest{Listen: number})
}

// enterArgs returns the command line for bubblewrap that first starts this program inside the sandbox, where it
// does what e says and then becomes the command.
func (s *supervisor) enterArgs(pipes *pipes, args *[]string, e enterRequest) ([]string, error) {
	if err := s.mountProgram(pipes, args); err != nil {
		return nil, err
	}
	var err error
	if e.Args = s.Args; s.writes != nil {
		if e.Mounted, err = folderIDOf(s.writes, writableInside); err != nil {
			return nil, err
		}
	}
	request, err := plainjson.Marshal(e)
	if err != nil {
		return nil, err
	}
	told, err := pipes.addText(request)
	if err != nil {
		return nil, err
	}
	return []string{programInside, enterCommand, told}, nil
}
