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

// insideProxy is where the proxy is inside, on the loopback of the command's own network.
const (
	insideProxy = "127.0.0.1:3128"
	insidePort  = 3128
)

// An entering is what is done inside before the command's program takes over.
type entering struct {
	Args []string
	Env  []string `json:",omitempty"` // nil leaves the environment
	// Listen is the file by which a listening socket is handed out; "" is none.
	Listen string `json:",omitempty"`
	// Walls, if set, are put up around this process first.
	Walls *landlockWalls `json:",omitempty"`
	// Mounted, if set, is the folder that the command can write to. Whoever may write to the
	// workspace could have put another in its place before it was mounted: then nothing is run.
	Mounted *place `json:",omitempty"`
}

// writesName is the variable that tells a command where it can write to.
const writesName = "JOB_DIR"

// A place is a folder, by its path and by what the filesystem knows it by.
type place struct {
	Path     string
	Dev, Ino uint64
}

// errMoved says that a folder is not the one that was meant.
var errMoved = errors.New("the folder that the command writes to was replaced meanwhile")

// open opens the folder, if it is the one that was meant.
func (p *place) open() (*os.File, error) {
	f, err := os.OpenFile(p.Path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	now, err := placeOf(f, p.Path)
	if err == nil && *now != *p {
		err = errMoved
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// identify is the place of an open folder that is seen at a path.
func placeOf(f *os.File, path string) (*place, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	return &place{Path: path, Dev: uint64(st.Dev), Ino: st.Ino}, nil
}

// descriptor is a path that leads to an open file, whatever becomes of its name.
func fdPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// openWrites opens the folder that the command can write to, where that is not the whole
// workspace, and lets root's command write to it. No link on the way is followed.
func (s *supervisor) openWrites() error {
	if s.Writes == "" {
		return nil
	}
	above, err := unix.Open(s.Workspace, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer closeFD(above)
	fd, err := unix.Openat2(above, s.Writes, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return err
	}
	s.writes = os.NewFile(uintptr(fd), s.Writes)
	if s.UID < 0 {
		return nil
	}
	return s.writes.Chown(s.UID, s.GID)
}

// closeWrites closes the folder.
func (s *supervisor) closeWrites() {
	if s.writes != nil {
		_ = s.writes.Close() // nothing was written to it by this process
	}
}

// Exit codes of a program that was not run, as shells have them.
const (
	codeNotRun   = 126
	codeNotFound = 127
)

// enter becomes the command, inside its walls. What fails is said to the file of
// the walls' socket, or else to standard error.
func enter(args []string) int {
	if len(args) != 1 {
		return codeNotRun
	}
	var e entering
	raw, err := fileNumbered(args[0])
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err == nil && e.Listen != "" {
		err = handOutSocket(e.Listen)
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

func fileNumbered(number string) ([]byte, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(n), "request")
	raw, err := io.ReadAll(f)
	return raw, errors.Join(err, f.Close())
}

// handOut makes the socket that the command connects to, and hands it to whoever
// has the other end of a file.
func handOutSocket(number string) error {
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

// receive takes a file that was handed out.
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

// serveInside lets a proxy serve the socket that is handed out from inside.
func serveInside(from *os.File, proxy Proxy) {
	listening, err := receiveFile(from)
	if err != nil {
		return // the command was not run, and what ran it says why
	}
	_ = proxy.Serve(listening) // where that fails the command finds nobody there
}
