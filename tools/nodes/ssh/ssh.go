// Package ssh reaches nodes that have not joined: the system's ssh runs "parley node --stdio" at the other end, and the link is on
// its standard input and output.
//
// Who is at the other end, and who may run programs there, is for ssh to say; the operator has configured it. Nothing of SSH is
// done here. Before the link (package wire) begins, each end sends a line of JSON: the node a Hello, the server a Greeting, and
// the node a Ready. So a link's keys are known, and whatever a shell prints before that is noticed.
//
// The files: target.go reads targets; start.go starts ssh and looks after it; preamble.go has the lines; stream.go makes
// a connection of two files; problem.go says what is wrong.
package ssh
