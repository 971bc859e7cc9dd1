package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideProxy is the proxy's address inside the sandbox, on the loopback of the command's own
// network.
const (
	insideProxy = "127.0.0.1:3128"
	insidePort  = 3128
)

// An enterRequest says what this program does after it was started inside the sandbox, before it
// becomes the command's program.
type enterRequest struct {
	Args []string
	Env  []string `json:",omitempty"` // nil leaves the environment as it is
	// Listen is the file descriptor over which a listening socket is sent to the supervisor; ""
	// means none.
	Listen string `json:",omitempty"`
	// Walls, if set, are the restrictions that this process first puts on itself.
	Walls *landlockRules `json:",omitempty"`
	// Plain means that root has started this process as another user, so it drops whatever it may
	// have kept of root's rights.
	Plain bool `json:",omitempty"`
	// Bare means that the command has no restrictions.
	Bare bool `json:",omitempty"`
	// Mounted, if set, is the folder that the command can write to. Somebody who may write to the
	// workspace could have replaced the folder before it was made visible inside; if so, nothing is
	// run.
	Mounted *folderID `json:",omitempty"`
}

// writableDirVariable is the environment variable that tells a command which folder it can write to.
const writableDirVariable = "JOB_DIR"

// A folderID identifies a folder by its path and by the device and inode at that path, so that a replaced folder is
// detected.
type folderID struct {
	Path     string
	Dev, Ino uint64
}

// errFolderReplaced is returned if another folder has taken the path of the intended one.
var errFolderReplaced = errors.New("the folder that the command writes to was replaced meanwhile")

// open opens the folder. It returns an error if another folder is at the path.
func (p *folderID) open() (*os.File, error) {
	f, err := os.OpenFile(p.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	now, err := folderIDOf(f, p.Path)
	if err == nil && *now != *p {
		err = errFolderReplaced
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// folderIDOf returns the folderID of an open folder with this path.
func folderIDOf(f *os.File, path string) (*folderID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	return &folderID{Path: path, Dev: uint64(st.Dev), Ino: st.Ino}, nil
}

// fdPath returns a path that leads to an open file, even if the file was renamed.
func fdPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// openWrites opens the folder that the command can write to, if that is not the whole workspace. If
// this process is root and the command runs as another user, it makes the folder writable for that
// user. It follows no link on the path.
func (s *supervisor) openWrites() error {
	if s.WritableDir == "" {
		return nil
	}
	above, err := s.workspace.open(unix.O_PATH)
	if err != nil {
		return err
	}
	defer closeFD(above)
	fd, err := unix.Openat2(above, s.WritableDir, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return err
	}
	s.writes = os.NewFile(uintptr(fd), s.WritableDir)
	if s.UID < 0 {
		return nil
	}
	return s.writes.Chown(s.UID, s.GID)
}

// closeWrites closes the folder that the command may write to.
func (s *supervisor) closeWrites() {
	if s.writes != nil {
		_ = s.writes.Close() // this process has written nothing to the folder
	}
}

// Exit codes of a program that was not run, as in shells.
const (
	codeNotRun   = 126
	codeNotFound = 127
)

// enterSandbox turns this process, which is already inside the sandbox, into the command. It returns only if that
// fails: it writes why to standard error, and returns the exit code.
func enterSandbox(args []string) int {
	if len(args) != 1 {
		return codeNotRun
	}
	var e enterRequest
	raw, err := readNumberedFile(args[0])
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err == nil && os.Geteuid() == 0 {
		err = errRoot
	}
	if err == nil && e.Plain {
		err = dropCapabilities()
	}
	if err == nil && e.Bare {
		err = filterSetIDs(e.Plain)
	}
	if err == nil && e.Listen != "" {
		err = sendListeningSocket(e.Listen)
	}
	if err == nil && e.Mounted != nil {
		var f *os.File
		if f, err = e.Mounted.open(); err == nil {
			err = f.Close()
		}
	}
	if err == nil && e.Walls != nil {
		err = e.Walls.enforce()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "parley: the sandbox cannot be set up:", err)
		return codeNotRun
	}
	env := e.Env
	if env == nil {
		env = os.Environ()
	}
	program, err := exec.LookPath(e.Args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		fmt.Fprintf(os.Stderr, "%s: not found\n", e.Args[0])
		return codeNotFound
	}
	err = syscall.Exec(program, e.Args, env)
	fmt.Fprintf(os.Stderr, "%s: %v\n", e.Args[0], err)
	return codeNotRun
}

// readNumberedFile reads the whole file that is open under this descriptor, and closes it.
func readNumberedFile(number string) ([]byte, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(n), "request")
	raw, err := io.ReadAll(f)
	return raw, errors.Join(err, f.Close())
}

// sendListeningSocket makes the listening socket that the command will connect to, and sends it to the supervisor over
// the file descriptor number.
func sendListeningSocket(number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = unix.Bind(l, &unix.SockaddrInet4{Port: insidePort, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(l, unix.SOMAXCONN)
	}
	if err == nil {
		err = unix.Sendmsg(n, []byte{0}, unix.UnixRights(l), nil, 0)
	}
	return errors.Join(err, unix.Close(l), unix.Close(n))
}

// receiveFile receives an open file that is sent over from, and closes from. It fails if the other side ends without
// sending one.
func receiveFile(from *os.File) (*os.File, error) {
	defer func() { _ = from.Close() }() // it was read
	space := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(from.Fd()), make([]byte, 1), space, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(space[:n])
	if err != nil || len(messages) == 0 {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1 {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return os.NewFile(uintptr(files[0]), "handed out"), nil
}

// serveInside receives the listening socket that was made inside the sandbox, and lets the proxy
// serve it.
func serveInside(from *os.File, proxy Proxy) {
	listening, err := receiveFile(from)
	if err != nil {
		return // the command was not run, and bubblewrap reports why
	}
	_ = proxy.Serve(listening) // if that fails, the command cannot connect
}
