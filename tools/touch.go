package tools

import "encoding/json"

// A Touch says what one call touches: what the operator's rules are matched with, which files of the
// workspace it reads and writes, and what it does to the outside. By this, and never by the name of a
// tool, it is decided whether a person is asked, which files are marked as possibly written by
// strangers, and what is noted so that it can be undone.
//
// A nil field means that nobody has said, and the worst is assumed: rules see the arguments as JSON, the call
// may read and write any file, and it acts on the outside.
type Touch struct {
	// Subject is what rules are matched with.
	Subject Subject
	// Reads are the files whose content the call may show or act on, and Writes those that it may make,
	// change or remove.
	Reads, Writes Files
	// Passes are the paths of files that the call sends, or hands to a sub-agent: the agent must be allowed to
	// read them.
	Passes []string
	// Outward is what the call does to the outside.
	Outward Outward
}

// A Subject is what a call acts on, as far as rules name it: a ShellLine, a Command, a URL, a Chat, or
// Paths.
type Subject interface{ isSubject() }

// A ShellLine is a line that sh runs. Rules are matched with each of its commands.
type ShellLine string

// A Command is a program and its arguments, which run without a shell.
type Command []string

// A URL is an address of the web that is asked for a page. Rules are matched with it in the one form in
// which it is fetched. Once something untrusted was read, it has to have been seen before, and only so
// many are fetched unasked.
type URL string

// A Chat is where a message goes, as the model names it: a channel and a chat of it, or a target or an
// address as the channel. Rules are matched with each address that it reaches; to reach another than the
// conversation's own is to act on the outside.
type Chat struct{ Channel, Chat string }

// Paths are files of the workspace, as the model names them.
type Paths []string

func (ShellLine) isSubject() {}
func (Command) isSubject()   {}
func (URL) isSubject()       {}
func (Chat) isSubject()      {}
func (Paths) isSubject()     {}

// Files says which files of a workspace are meant: NoFiles, Paths, or AnyFiles.
type Files interface{ isFiles() }

// NoFiles means no files.
type NoFiles struct{}

// AnyFiles means any file that there is.
type AnyFiles struct{}

func (NoFiles) isFiles()  {}
func (AnyFiles) isFiles() {}
func (Paths) isFiles()    {}

// An Outward says what a call does to the outside, beyond its answer to whoever asks: Inside, Would, Runs,
// or HandsOut.
type Outward interface{ isOutward() }

// Inside is nothing beyond what the Subject says: a request to a URL, a message to a Chat.
type Inside struct{}

// Would is what the call does, in the words in which a person is asked about it: "it would …".
type Would string

// Runs says that the call runs a program in the sandbox, and what that would do. It counts if the program reaches the
// network.
type Runs struct {
	Would Would
	// Offline says that the program is not given the network. Without a sandbox it has the network all
	// the same.
	Offline bool
}

// HandsOut is a task that a sub-agent works on, which may fetch pages.
type HandsOut struct{}

func (Inside) isOutward()   {}
func (Would) isOutward()    {}
func (Runs) isOutward()     {}
func (HandsOut) isOutward() {}

// Touches makes a function for Spec.Touches of one that says, by a call's arguments, what the call
// touches. Arguments that cannot be read as a whole are given as far as they can: the tool refuses them.
func Touches[Args any](touch func(args Args) Touch) func(Call) Touch {
	return func(call Call) Touch {
		var args Args
		_ = json.Unmarshal(call.Args, &args)
		return touch(args)
	}
}

// TouchesAlways makes a function for Spec.Touches of a tool whose calls all touch the same things.
func TouchesAlways(t Touch) func(Call) Touch { return func(Call) Touch { return t } }

// TouchesNothing returns a function for Spec.Touches of a tool that touches neither files nor the outside,
// and whose arguments rules see as JSON.
func TouchesNothing() func(Call) Touch {
	return TouchesAlways(Touch{Reads: NoFiles{}, Writes: NoFiles{}, Outward: Inside{}})
}

// Touch returns what the call touches.
func (c Call) Touch() Touch {
	if c.Touches == nil {
		return Touch{}
	}
	return c.Touches(c)
}

// MayWrite reports whether the call may make, change or remove files of the workspace.
func (t Touch) MayWrite() bool {
	_, none := t.Writes.(NoFiles)
	return !none
}
