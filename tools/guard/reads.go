package guard

import (
	"parley/tools"
	"parley/tools/guard/shellline"
)

// ReadsOnlyNamed reports whether a call acts on no files of the workspace but those that its arguments
// name, as FileWords returns them. Of a command that is so only if nothing about it is left to be
// found out as it runs. What may read any file and writes none only shows them.
func ReadsOnlyNamed(call tools.Call) bool {
	t := call.Touch()
	switch of := t.Subject.(type) {
	case tools.ShellLine:
		return shellline.IsPlain(string(of))
	case tools.Command:
		return len(of) > 0 && shellline.IsPlainCommand(of[0], of[1:])
	}
	return !anyFiles(t.Reads) || !anyFiles(t.Writes)
}
