package guard

import (
	"parley/tools"
	"parley/tools/guard/shellline"
)

// ReadsOnlyNamed reports whether a call reads no files of the workspace except those that its arguments name (see
// FileWords). For a command, this requires that everything it runs is known before it runs. A call that may read
// any file, but may not write any file, also qualifies, because it only shows what it reads, and so does one that
// touches no files of the workspace, such as a command on another machine.
func ReadsOnlyNamed(call tools.Call) bool {
	t := call.Touch()
	if noFiles(t) {
		return true
	}
	switch of := t.Subject.(type) {
	case tools.ShellLine:
		return shellline.IsPlain(string(of))
	case tools.Command:
		return len(of) > 0 && shellline.IsPlainCommand(of[0], of[1:])
	}
	return !anyFiles(t.Reads) || !anyFiles(t.Writes)
}
