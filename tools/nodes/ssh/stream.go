package ssh

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A stream is a connection that reads from one file and writes to another.
type stream struct {
	in, out *os.File
	name    string
	closing sync.Once
	onClose func() // if set, called once when it is closed
}

// Standard returns the standard input and output of this process as a connection. From then on nothing else reads from
// standard input, and other output to standard output goes to standard error.
func Standard() (net.Conn, error) {
	in, err := reopenStandard(unix.Stdin, "stdin")
	if err != nil {
		return nil, err
	}
	out, err := reopenStandard(unix.Stdout, "stdout")
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	s := &stream{in: in, out: out, name: "stdio"}
	if err := cmp.Or(s.SetReadDeadline(time.Time{}), s.SetWriteDeadline(time.Time{})); err != nil {
		return nil, errors.Join(fmt.Errorf("the standard input and output are no pipes: %w", err), s.Close())
	}
	nothing, err := os.Open(os.DevNull)
	if err == nil {
		err = errors.Join(unix.Dup2(int(nothing.Fd()), unix.Stdin), unix.Dup2(unix.Stderr, unix.Stdout), nothing.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("use the standard input and output: %w", err), s.Close())
	}
	return s, nil
}

// reopenStandard returns another descriptor of a standard file, with deadlines for reads and writes.
func reopenStandard(fd int, name string) (*os.File, error) {
	err := unix.SetNonblock(fd, true)
	if err == nil {
		fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, unix.Stderr+1)
	}
	if err != nil {
		return nil, fmt.Errorf("use the %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Read implements net.Conn.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	return n, asNetError(err)
}

// Write implements net.Conn.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.out.Write(p)
	return n, asNetError(err)
}

// asNetError turns the error of a file whose deadline has passed into a net.Error, which net/http needs.
func asNetError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return os.ErrDeadlineExceeded
	}
	return err
}

// Close closes both files, and so ends what reads or writes.
func (s *stream) Close() (err error) {
	s.closing.Do(func() {
		err = errors.Join(s.out.Close(), s.in.Close())
		if s.onClose != nil {
			s.onClose()
		}
	})
	return err
}

// LocalAddr implements net.Conn.
func (s *stream) LocalAddr() net.Addr { return addr(s.name) }

// RemoteAddr implements net.Conn.
func (s *stream) RemoteAddr() net.Addr { return addr(s.name) }

// SetDeadline implements net.Conn.
func (s *stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (s *stream) SetReadDeadline(t time.Time) error { return s.in.SetReadDeadline(t) } //nolint:wrapcheck // as of any net.Conn

// SetWriteDeadline implements net.Conn.
func (s *stream) SetWriteDeadline(t time.Time) error { return s.out.SetWriteDeadline(t) } //nolint:wrapcheck // as of any net.Conn

// An addr is the address of an end of a stream.
type addr string

// Network implements net.Addr.
func (addr) Network() string { return "ssh" }

// String implements net.Addr.
func (a addr) String() string { return string(a) }
