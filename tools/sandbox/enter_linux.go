package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/egress"
)

// insideProxy is where the proxy is inside, on the loopback of the command's own network.
const insideProxy = "127.0.0.1:3128"

// An entering is what is done inside before the command's program takes over.
type entering struct {
	Args []string
	Env  []string `json:",omitempty"` // nil leaves the environment
	// Listen is the file by which a listening socket is handed out; "" is none.
	Listen string `json:",omitempty"`
	// Walls, if set, are put up around this process first.
	Walls *landlockWalls `json:",omitempty"`
}

// Exit codes of a program that was not run, as shells have them.
const (
	codeNotRun   = 126
	codeNotFound = 127
)

// enter becomes the command, inside its walls. What fails is said to the file of
// the walls' socket, or else to standard error.
func enter() int {
	runtime.LockOSThread() // walls are a thread's; the one that puts them up becomes the command
	if len(os.Args) != 3 {
		return codeNotRun
	}
	var e entering
	raw, err := fileNumbered(os.Args[2])
	if err == nil {
		err = json.Unmarshal(raw, &e)
	}
	if err == nil && e.Listen != "" {
		err = handOut(e.Listen)
	}
	if err == nil && e.Walls != nil {
		err = e.Walls.putUp()
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
func handOut(number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", insideProxy) //nolint:noctx // nothing is waited for
	if err != nil {
		return err
	}
	f, err := l.(*net.TCPListener).File()
	if err == nil {
		err = unix.Sendmsg(n, []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0)
		err = errors.Join(err, f.Close())
	}
	return errors.Join(err, l.Close(), unix.Close(n))
}

// receive takes a file that was handed out.
func receive(from *os.File) (*os.File, error) {
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
func serveInside(from *os.File, proxy *egress.Proxy) {
	f, err := receive(from)
	if err != nil {
		return // the command was not run, and what ran it says why
	}
	l, err := net.FileListener(f)
	_ = f.Close() // it was copied
	if err == nil {
		_ = proxy.Serve(l) // the command finds nobody there
	}
}
