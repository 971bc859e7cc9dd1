//go:build unix

package plainhttp

import (
	"errors"
	"net"
	"syscall"
)

// isQuiet reports whether an idle connection is open, and the server has sent nothing: that would
// be taken for the response to the next request.
func isQuiet(c net.Conn) bool {
	with, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := with.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, err := syscall.Read(int(fd), one[:])
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && quiet
}
