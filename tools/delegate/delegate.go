// Package delegate is the tools with which an agent hands tasks to sub-agents, and looks after them.
//
// A call of task makes the turn wait for the report. sessions_spawn returns at once, and the
// report is told in the conversation once it is there.
package delegate

import (
	"context"
	"strings"

	"parley/tools"
)

// Bounds of what is handed out.
const (
	maxPrompt = 64 << 10 // bytes
	maxFiles  = 50
)

// A Desk hands out tasks, and knows the sessions of sub-agents: it is the part of the program that
// the tools ask. Its errors are for the model.
type Desk interface {
	// Spawn hands out a task whose report comes as mail.
	Spawn(ctx context.Context, call tools.Call, d tools.Delegation) (any, error)
}

type taskArgs struct {
	Prompt string   `json:"prompt" jsonschema:"what is to be done, whole: the sub-agent sees nothing of this conversation"`
	Agent  string   `json:"agent,omitempty" jsonschema:"the agent that is to do it; this one if left out"`
	Files  []string `json:"files,omitempty" jsonschema:"files and folders of this workspace that are copied into that of the sub-agent"`
}

// delegation returns what the arguments hand out, or what is wrong with them.
func (a taskArgs) delegation() (tools.Delegation, error) {
	d := tools.Delegation{Agent: a.Agent, Prompt: strings.TrimSpace(a.Prompt), Files: a.Files}
	switch {
	case d.Prompt == "":
		return d, tools.Errorf(tools.InvalidArgs, "the prompt is empty: write what is to be done")
	case len(d.Prompt) > maxPrompt:
		return d, tools.Errorf(tools.InvalidArgs, "the prompt has %d bytes, at most %d are allowed: put the rest into a file, and name it in files", len(d.Prompt), maxPrompt)
	case len(d.Files) > maxFiles:
		return d, tools.Errorf(tools.InvalidArgs, "there are %d files, at most %d are allowed: name their folder", len(d.Files), maxFiles)
	}
	return d, nil
}

// New makes the tools.
func New(d Desk) []tools.Tool {
	return []tools.Tool{
		tools.New(tools.Spec{
			Name: "task", Effect: tools.Idempotent, Permission: tools.Session,
			Description: "Hand a task to a sub-agent, which works in a session and a workspace of its own, and wait for its report. Several calls at once are worked on side by side. Give it all that it needs: it cannot ask you anything.",
		}, wait, tools.Delegates(taskArgs.delegation)),
		tools.New(tools.Spec{
			Name: "sessions_spawn", Effect: tools.Idempotent, Permission: tools.Session,
			Description: "Hand a task to a sub-agent, and go on without waiting. Its report is told in this conversation by itself, once it is there.",
		}, func(ctx context.Context, call tools.Call, args taskArgs) (any, error) {
			what, err := args.delegation()
			if err != nil {
				return nil, err
			}
			return d.Spawn(ctx, call, what)
		}),
	}
}

// wait answers a caller that runs the call of task although the turn should have waited.
func wait(context.Context, tools.Call, taskArgs) (any, error) {
	return nil, tools.Errorf(tools.PermissionDenied, "Nothing can be handed out from here: do it yourself.")
}
