// Package seccomp makes the filters that keep a sandboxed command from system calls.
//
// They are for what other walls leave open: calls that reach other processes of
// the same user, memory that nobody counts, and networks that are no namespace's.
package seccomp

import "errors"

// ErrArchitecture says that there are no filters for this kind of processor.
var ErrArchitecture = errors.New("there is no filter of system calls for this kind of processor")

// A Filter is one of the filters that there are.
type Filter int

const (
	// Hardened is for a command in namespaces of its own.
	Hardened Filter = iota
	// Closed is for a command that shares its namespaces with others: it makes no
	// socket, and reaches no process, keyring or memory of others. What it does to
	// a file's mode and times by a path is left to whoever holds the listener.
	Closed
)
