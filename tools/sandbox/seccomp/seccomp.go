// Package seccomp makes the filters that refuse certain system calls to a sandboxed command.
//
// The filters close gaps that the other walls leave: calls that reach other processes of the same
// user, memory that no limit counts, and networks that belong to no namespace.
package seccomp

import "errors"

// ErrArchitecture means that there are no filters for this processor architecture.
var ErrArchitecture = errors.New("there is no filter of system calls for this kind of processor")

// A Filter names one of the filters.
type Filter int

const (
	// Hardened is for a command in namespaces of its own.
	Hardened Filter = iota
	// Closed is for a command that shares its namespaces with others: it cannot make sockets, and
	// cannot reach the processes, keyrings or memory of others. The process that holds the filter's
	// listener decides whether the command may change a file's mode or times.
	Closed
	// Bare is for a command without walls: it only keeps the command from setting the set-ID bits,
	// and from using io_uring, which could set them unseen.
	Bare
)
