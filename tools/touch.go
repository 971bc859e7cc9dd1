package tools

import "encoding/json"

// A Touch says what one call touches: the subject that the operator's rules match, the files of the
// workspace that it reads and writes, and what it does to the outside. This decides, and a tool's name never does,
// whether the call needs approval, which files are marked as possibly written by strangers, and what is recorded
// for undo.
//
// A nil field is undeclared, and the worst is assumed: rules see the arguments as JSON, the call may
// read and write any file, and it acts on the outside.
type Touch struct {
	// Subject is what rules are matched against.
	Subject Subject
	// Reads are the files whose content the call may show or act on, and Writes are those that it may
	// create, change or remove.
	Reads, Writes Files
	// Passes are the paths of files that the call sends, or hands to a sub-agent: the agent must be allowed to
	// read them.
	Passes []string
	// Outward is what the call does to the outside.
	Outward Outward
}

// A Subject is what a call acts on, in a form that rules can name: a ShellLine, a Command, a URL, a Chat, or Paths.
type Subject interface{ isSubject() }

// A ShellLine is a line that sh runs. Rules match each of its commands.
type ShellLine string

// A Command is a program and its arguments, which run without a shell.
type Command []string

// A URL is the address of a web page to fetch. Rules match its canonical form, which is also the one
// fetched. Once something untrusted was read, the model must have seen the URL before, and only a
// limited number are fetched without approval.
type URL string

// A Chat is where a message goes, as the model names it: a channel and a chat in it or, in Channel, a target or an
// address. Rules match each address that it reaches; reaching any address other than the conversation's own is
// acting on the outside.
type Chat struct{ Channel, Chat string }

// Paths are files of the workspace, as the model names them.
type Paths []string

func (ShellLine) isSubject() {}
func (Command) isSubject()   {}
func (URL) isSubject()       {}
func (Chat) isSubject()      {}
func (Paths) isSubject()     {}

// Files is a set of files of a workspace: NoFiles, Paths, or AnyFiles.
type Files interface{ isFiles() }

// NoFiles means no files.
type NoFiles struct{}

// AnyFiles means any file.
type AnyFiles struct{}

func (NoFiles) isFiles()  {}
func (AnyFiles) isFiles() {}
func (Paths) isFiles()    {}

// An Outward says what a call does to the outside, beyond its answer to the person who asks: NothingOutward,
// OutwardEffect, RunsProgram, or HandsOutTask.
type Outward interface{ isOutward() }

// NothingOutward means nothing beyond what the Subject says: a request to a URL, a message to a Chat.
type NothingOutward struct{}

// OutwardEffect says what the call does, worded for the person who approves it: "it would …".
type OutwardEffect string

// RunsProgram says that the call runs a program in the sandbox, and what that would do. It counts as acting on the
// outside if the program can reach the network.
type RunsProgram struct {
	Effect OutwardEffect
	// Offline says that the program gets no network access. Without a sandbox, it has network access
	// anyway.
	Offline bool
}

// HandsOutTask means that a sub-agent, which may fetch pages, works on a task.
type HandsOutTask struct{}

func (NothingOutward) isOutward() {}
func (OutwardEffect) isOutward()  {}
func (RunsProgram) isOutward()    {}
func (HandsOutTask) isOutward()   {}

// Touches turns a function of a call's arguments into one for Spec.Touches. If arguments can be parsed only in
// part, the function gets that part; the tool refuses such a call.
func Touches[Args any](touch func(args Args) Touch) func(Call) Touch {
	return func(call Call) Touch {
		var args Args
		_ = json.Unmarshal(call.Args, &args)
		return touch(args)
	}
}

// TouchesAlways makes a function for Spec.Touches of a tool whose calls all touch the same things.
func TouchesAlways(t Touch) func(Call) Touch { return func(Call) Touch { return t } }

// TouchesNothing returns a function for Spec.Touches of a tool that touches neither files nor the outside, and
// whose arguments are shown to rules as JSON.
func TouchesNothing() func(Call) Touch {
	return TouchesAlways(Touch{Reads: NoFiles{}, Writes: NoFiles{}, Outward: NothingOutward{}})
}

// Touch returns what the call touches.
func (c Call) Touch() Touch {
	if c.Touches == nil {
		return Touch{}
	}
	return c.Touches(c)
}

// MayWrite reports whether the call may create, change or remove files of the workspace.
func (t Touch) MayWrite() bool {
	_, none := t.Writes.(NoFiles)
	return !none
}
