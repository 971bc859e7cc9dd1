package main

import (
	"errors"
	"fmt"

	"parley/cmd/parley/config"
	"parley/cmd/parley/onboard"
	"parley/cmd/parley/terminal"
)

// These are the exit codes of the program. Scripts rely on them, so they must not change.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2  // the command was called wrongly
	exitUnknown = 3  // nobody can tell whether a message was sent
	exitQueued  = 4  // a message is still waiting to be sent
	exitConfig  = 78 // the configuration is wrong
)

// exitCode prints the error of a command, if there is one, and returns the exit code.
func exitCode(err error, tty terminal.Terminal) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(&terminal.Screen{To: tty.Err}, "parley:", err)
	if code, ok := outcomeCode(err); ok {
		return code
	}
	var usage *usageError
	var called *onboard.UsageError
	var wrong *config.Error
	var setting *config.SettingError
	switch {
	case errors.As(err, &usage), errors.As(err, &called):
		return exitUsage
	case errors.As(err, &wrong), errors.As(err, &setting), needsSetup(err):
		return exitConfig
	}
	return exitFailed
}

// A usageError means that a command was called wrongly.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

// An outcomeError says that a message that the command has waited for wasn't sent, may not have been sent, or is still
// waiting. Its exit code tells scripts which of the three.
type outcomeError struct {
	code int
	msg  string
}

func (e *outcomeError) Error() string { return e.msg }

// outcomeCode returns the exit code of an outcomeError; false if err is something else.
func outcomeCode(err error) (int, bool) {
	o, ok := errors.AsType[*outcomeError](err)
	if !ok {
		return 0, false
	}
	return o.code, true
}
