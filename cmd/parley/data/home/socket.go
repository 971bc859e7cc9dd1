package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// maxSocketPath is the longest path of a socket, in bytes, that the supported kernels accept.
	maxSocketPath = 103
	// socketFolder is the prefix of the name of a folder that contains the socket of a home whose
	// own path is too long for one.
	socketFolder = "parley-"
)

// ListenSocket listens on the home's socket. The socket is in the home or, if that path is too
// long, in a new folder that only this user can open, and that a link in the home leads to. It
// replaces a socket left by a dead process: only one process at a time has a home open.
func ListenSocket(home string, log *slog.Logger) (net.Listener, error) {
	path := filepath.Join(home, SocketFile)
	if err := removeSocket(path); err != nil {
		return nil, fmt.Errorf("remove an old socket: %w", err)
	}
	at := path
	if len(path) > maxSocketPath {
		folder, err := os.MkdirTemp(runtimeFolder(), socketFolder) // mode 0700, and an unpredictable name
		if err != nil {
			return nil, fmt.Errorf("make a folder for the home's socket: %w", err)
		}
		at = filepath.Join(folder, SocketFile)
		if err := os.Symlink(at, path); err != nil {
			return nil, errors.Join(fmt.Errorf("link the home's socket: %w", err), os.Remove(folder))
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "unix", at)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen on the home's socket: %w", err), removeSocket(path))
	}
	if err := os.Chmod(at, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("protect the home's socket: %w", err), l.Close(), removeSocket(path))
	}
	return &socketListener{Listener: l, path: path, log: log}, nil
}

// runtimeFolder returns the folder in which folders for sockets are created: the system's folder for this user, or
// else the folder for temporary files.
func runtimeFolder() string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || !filepath.IsAbs(dir) || info.Mode()&othersMayWrite != 0 {
		return os.TempDir()
	}
	if uid, ok := uidOf(info); !ok || uid != os.Geteuid() {
		return os.TempDir()
	}
	return dir
}

// removeSocket removes a home's socket, and the folder that a link to it leads to.
func removeSocket(path string) error {
	at, err := os.Readlink(path)
	if err == nil && filepath.Base(at) == SocketFile && strings.HasPrefix(filepath.Base(filepath.Dir(at)), socketFolder) {
		// What cannot be removed is not ours, or is gone: neither keeps us from making a new one.
		_ = os.Remove(at)
		_ = os.Remove(filepath.Dir(at))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// A socketListener accepts connections only from this user and root.
type socketListener struct {
	net.Listener
	path string // the socket's path in the home
	log  *slog.Logger
}

// Accept waits for the next connection from a user who is allowed to connect.
func (l *socketListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		err = checkUser(conn, 0, os.Geteuid())
		if err == nil {
			return conn, nil
		}
		l.log.Warn("a connection to the home's socket is refused", slog.Any("error", err))
		_ = conn.Close() // nothing was written, so nothing can be lost
	}
}

// Close ends listening and removes the socket.
func (l *socketListener) Close() error {
	return errors.Join(l.Listener.Close(), removeSocket(l.path))
}

// DialSocket connects to the process that serves a home if that process runs as this user or as
// root; for root, also if it runs as the home's owner. It sends nothing to another user who has put
// their own socket in its place.
func DialSocket(ctx context.Context, home string) (net.Conn, error) {
	path := filepath.Join(home, SocketFile)
	trusted := []int{0, os.Geteuid()}
	if info, err := os.Stat(home); err == nil && os.Geteuid() == 0 {
		if uid, ok := uidOf(info); ok {
			trusted = append(trusted, uid)
		}
	}
	if len(path) > maxSocketPath {
		at, err := os.Readlink(path)
		if err != nil {
			return nil, fmt.Errorf("find the home's socket: %w", err)
		}
		path = at
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := checkUser(conn, trusted...); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// checkUser returns an error unless the process at the other end of a connection belongs to one of these users, or this
// system can't say to whom it belongs.
func checkUser(conn net.Conn, users ...int) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("a %T doesn't say which user is at its other end", conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return fmt.Errorf("find out the user of a connection: %w", err)
	}
	var uid int
	var asked error
	if err := raw.Control(func(fd uintptr) { uid, asked = peerOf(int(fd)) }); err != nil {
		return fmt.Errorf("find out the user of a connection: %w", err)
	}
	if errors.Is(asked, errors.ErrUnsupported) {
		return nil // the permissions of the socket and its folder have to suffice
	}
	if asked != nil {
		return fmt.Errorf("find out the user of a connection: %w", asked)
	}
	if !slices.Contains(users, uid) {
		return fmt.Errorf("user %d is at the other end of the home's socket, and isn't allowed to use it", uid)
	}
	return nil
}
