package guard

import (
	"slices"
	"strings"
	"sync"

	"parley/tools"
	"parley/tools/askuser"
	"parley/tools/changes"
	"parley/tools/code"
	"parley/tools/files"
	"parley/tools/git"
	"parley/tools/history"
	"parley/tools/image"
	"parley/tools/jobs"
	"parley/tools/memory"
	"parley/tools/message"
	"parley/tools/schedules"
	"parley/tools/shell"
	"parley/tools/skills"
	"parley/tools/skills/folder"
	"parley/tools/subagents"
	"parley/tools/todo"
	"parley/tools/web"
)

// realTools returns the tools that agents have, with their declarations; they cannot run.
var realTools = sync.OnceValue(func() *tools.Set {
	return tools.NewSet(slices.Concat(
		files.New(nil, nil), code.New[code.Dir](nil, nil), memory.New(nil, nil), todo.New(nil), jobs.New(nil), shell.New(shell.Config{}), git.New(git.Config{}), image.New(nil),
		[]tools.Tool{message.New(nil), askuser.New(), history.New(nil), schedules.New(nil), skills.New(nil), changes.New(nil)},
		web.New(web.Config{}), subagents.New(nil),
	)...)
})

// withDeclaration returns a call with its tool's declaration: that of the real tool or, for SKILL__PROGRAM, that of a
// program that wants the network. Other tools declare nothing.
func withDeclaration(c tools.Call) tools.Call {
	if tool, ok := realTools().Lookup(c.Name); ok {
		c.Touches = tool.Spec().Touches
	} else if skill, program, ok := strings.Cut(c.Name, "__"); ok {
		of := skills.Skill{Skill: folder.Skill{Name: skill, Programs: []folder.Program{{Name: program, Network: true}}}}
		c.Touches = skills.Runner{}.Tools(of)[0].Spec().Touches
	}
	return c
}

// patchOf returns a patch that changes a line of each of these files.
func patchOf(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("--- a/" + name + "\n+++ b/" + name + "\n@@ -1 +1 @@\n-a\n+b\n")
	}
	return b.String()
}
