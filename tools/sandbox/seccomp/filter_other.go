//go:build linux && !amd64 && !arm64

package seccomp

import "golang.org/x/sys/unix"

// Assemble returns ErrArchitecture: there is no filter for this architecture.
func Assemble(Filter) ([]byte, error) { return nil, ErrArchitecture }

// Program returns nil: there is no filter for this architecture.
func Program(Filter) []unix.SockFilter { return nil }

// Chmod is a call that this architecture doesn't have.
const Chmod = -1
