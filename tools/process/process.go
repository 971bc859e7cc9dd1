// Package process limits the memory of this process, and stores the newest lines of its log.
//
// It determines how much memory the process may use, and when the garbage collector runs while it
// serves: seldom if little memory is in use, and more often if much is.
//
// By default, Go collects when as much was allocated as is in use. So thousands of turns that wait
// for their models would make the process take twice what they need, and a bot that needs 10 MB
// would collect after every few messages: see Adapt.
package process
