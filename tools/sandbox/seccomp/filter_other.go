//go:build linux && !amd64 && !arm64

package seccomp

import "golang.org/x/sys/unix"

// Assemble returns ErrArchitecture: there is no filter for this kind of processor.
func Assemble(Filter) ([]byte, error) { return nil, ErrArchitecture }

// Program returns nil: there is no filter for this kind of processor.
func Program(Filter) []unix.SockFilter { return nil }

// Chmod is a call that this kind of processor does not have.
const Chmod = -1
