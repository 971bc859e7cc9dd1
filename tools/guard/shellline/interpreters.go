package shellline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// interpreters checks programs that run code in a language of their own, because that code may run
// other commands.
type interpreters struct{ *findings }

// checkAwk marks the line as opaque if an awk program in it may run other commands.
func (i interpreters) checkAwk(args []word) {
	for _, a := range args {
		if strings.Contains(a.text, "system") || strings.ContainsAny(a.text, "|") || strings.Contains(a.text, "getline") {
			i.addHidden("awk runs other commands")
		}
	}
}

// checkInterpreter marks the line as opaque if it passes code to an interpreter such as python.
func (i interpreters) checkInterpreter(u invocation) {
	input := u.piped
	for _, r := range u.redirs {
		input = input || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc
	}
	file := false
	for _, a := range u.words[1:] {
		switch text := a.text; {
		case !strings.HasPrefix(text, "-"):
			file = file || text != ""
		case strings.HasPrefix(text, "--eval"), strings.HasPrefix(text, "--print"), strings.HasPrefix(text, "--run"):
			i.addHidden(u.program() + " runs code that isn't shell code")
		case !strings.HasPrefix(text, "--") && strings.ContainsAny(text, "ceErpn"):
			if !file {
				i.addHidden(u.program() + " runs code that isn't shell code")
			}
		}
	}
	if input && !file {
		i.addHidden(u.program() + " runs code that isn't shell code")
	}
}

// checkSed adds a hidden command, one that the guard can't see, if a sed script runs commands or
// can't be read.
func (i interpreters) checkSed(args []word) {
	if newSedScripts(args).runs {
		i.addHidden("sed runs other commands, or a script that can't be seen")
	}
}
