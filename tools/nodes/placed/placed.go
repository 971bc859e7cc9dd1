// Package placed says which tools of an agent run on a node, a device, if the agent works there.
package placed

import (
	"context"
	"errors"

	"parley/tools"
	"parley/tools/changes"
	"parley/tools/code"
	"parley/tools/documents/pages"
	"parley/tools/files"
	"parley/tools/git"
	"parley/tools/shell"
)

// Tools returns the tools that run on a node if the agent works there: those of files and the shell. Only the
// node can run them; these specs say what rules match, and what people see of a call.
func Tools() []tools.Spec {
	return specsOf(append(files.New(nowhere, nil), shell.New(shell.Config{})...))
}

// Offered returns those of Tools that a node has, as a node of this release describes them. Without a sandbox, it runs no
// commands, and reads no documents.
func Offered(sandboxed bool) []tools.Spec {
	if !sandboxed {
		return specsOf(files.New(nowhere, nil))
	}
	return specsOf(append(files.New(nowhere, struct{ pages.Reader }{}), shell.NewForeground(shell.Config{})))
}

func nowhere(context.Context, tools.Call) (files.Dir, error) { return nil, errors.ErrUnsupported }

func specsOf(all []tools.Tool) (specs []tools.Spec) {
	for _, t := range all {
		specs = append(specs, t.Spec())
	}
	return specs
}

// Left returns the names of the tools that an agent goes without if it works on a node: they show, index or change
// what its file tools and commands have in a workspace, where it has nothing then.
func Left() (names []string) {
	all := append(code.New[code.Dir](nil, nil), git.New(git.Config{})...)
	all = append(all, changes.New(nil))
	for _, t := range all {
		names = append(names, t.Spec().Name)
	}
	return names
}
