package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/tools"
)

// ErrorForModel turns an error from Run, which means that a command was not run, into an error for
// the model. It returns the error of a context unchanged.
func ErrorForModel(err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, ErrNoNetworkIsolation):
		return tools.Errorf(tools.PermissionDenied, "commands run without a sandbox here, so they have the network, which this agent may not use: the operator grants it the capability \"network\", or sets another [sandbox] mode")
	case errors.Is(err, ErrCannotProvideNetwork):
		return tools.Errorf(tools.ExecutionFailed, "commands run with Landlock here, which cannot give one of them the network: the operator sets network = \"none\" for it, or makes bubblewrap work")
	case errors.Is(err, ErrRootsOwn):
		return tools.Errorf(tools.PermissionDenied, "commands never run as root, and nobody but root can work in this directory: the operator has to run parley as an ordinary user, or give the directory to one")
	case errors.Is(err, ErrUnreachable):
		return tools.Errorf(tools.ExecutionFailed, "the command was not run: commands never run as root, and the user that they run as cannot reach what they need: parley doctor tells the operator what to do")
	case errors.Is(err, ErrReplaced):
		return tools.Errorf(tools.ExecutionFailed, "the command was not run, because another folder has taken the place of the workspace: the operator puts it back, or restarts parley")
	case errors.Is(err, ErrLate):
		return tools.Errorf(tools.ExecutionFailed, "the command was not run, because too much time had passed before it could start: run it again")
	}
	return tools.Errorf(tools.ExecutionFailed, "the command could not be run: %v", err)
}

// EndedError returns the error for the model about a command that was ended for what it did; nil if
// the command ended by itself. took is how long it ran.
func EndedError(r Result, took time.Duration) error {
	if r.Killed == "" {
		return nil
	}
	code, why := tools.ExecutionFailed, r.Detail
	if r.Killed == Timeout {
		code, why = tools.Timeout, fmt.Sprintf("it was not done after %s: give it a longer timeout, if it takes one, or do less at once", took.Round(100*time.Millisecond))
	}
	return tools.Errorf(code, "The command was ended with all that it had started: %s. What it did until then is done: inspect before repeating it.%s%s",
		why, outputTail("stdout", r.Stdout), outputTail("stderr", r.Stderr))
}

// outputTail returns the end of an output under its name, short enough for an error; "" if there
// was no output.
func outputTail(name, text string) string {
	const most = 2000
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return "\nThe end of " + name + ":\n" + text
}
