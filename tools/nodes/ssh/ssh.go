// Package ssh reaches nodes that have not joined: the system's ssh runs "parley node --stdio" at the other end, and the
// link uses its standard input and output.
//
// ssh decides who is at the other end, and who may run programs there; the operator has configured that. This package
// implements nothing of SSH. Before the link (package wire) begins, each end sends lines of JSON: the node a Hello, the
// server a Greeting, and the node a Ready. So both keys of a link are known, and output that a shell prints before that
// is noticed.
//
// The files: target.go reads targets; start.go starts ssh and ends it; preamble.go has the lines; stream.go makes a
// connection of two files; problem.go says what is wrong.
package ssh
