//go:build linux && !amd64 && !arm64

package seccomp

import "golang.org/x/sys/unix"

// Assemble has no filter to make.
func Assemble(Filter) ([]byte, error) { return nil, ErrArchitecture }

// Program has no filter to make.
func Program(Filter) []unix.SockFilter { return nil }

// Chmod is a call that this kind of processor does not have.
const Chmod = -1
