// Package subagents provides the tools with which an agent hands tasks to sub-agents, and looks after them.
//
// A call of task makes the turn wait for the report. sessions_spawn returns at once, and the report arrives in the
// conversation when it is ready. The other tools show sessions and send texts to them: for a conversation, these
// are its own session and those of its sub-agents; for an owner in a private chat, all sessions. subagents.go hands
// out tasks, sessions.go contains the other tools.
package subagents

import (
	"context"
	"strings"

	"parley/tools"
)

// Limits of a task that is handed out.
const (
	maxPrompt = 64 << 10 // bytes
	maxFiles  = 50
	maxNeeds  = 10
)

// A Backend hands out tasks, and knows sessions: it is the part of the program that the tools call. Its errors are
// for the model.
type Backend interface {
	// Spawn hands out a task without making the turn wait: the report arrives later, as a message.
	Spawn(ctx context.Context, call tools.Call, d tools.Task) (any, error)
	// Send says a text in another session that the call may see, and returns before it is answered. For a
	// sub-agent's session, the text is a further task, whose report arrives later, as a message. Another session
	// answers in its own chat.
	Send(ctx context.Context, call tools.Call, session, text string) (any, error)
	// List lists the call's session and those of its sub-agents or, if p says so and an owner asks in a private chat, a
	// page of all sessions.
	List(ctx context.Context, call tools.Call, p ListArgs) (any, error)
	// History returns what was said and done in a session, from an entry on; if from is 0, the newest entries.
	History(ctx context.Context, call tools.Call, session string, from int64) (any, error)
	// Status says whether a session works, waits or is idle, and describes its tasks. "" is the call's own session.
	Status(ctx context.Context, call tools.Call, session string) (any, error)
	// Agents describes the agents that the calling agent may hand tasks to, which may include itself.
	Agents(ctx context.Context, call tools.Call) (any, error)
}

type taskArgs struct {
	Prompt string   `json:"prompt" jsonschema:"what is to be done, whole: the sub-agent sees nothing of this conversation"`
	Agent  string   `json:"agent,omitempty" jsonschema:"the agent that is to do it; this one if left out"`
	Needs  []string `json:"needs,omitempty" jsonschema:"in place of agent: what the agent must be able to do, in the words of agents_list; one that can do all of it gets the task"`
	Files  []string `json:"files,omitempty" jsonschema:"files and folders of this workspace that are copied into that of the sub-agent"`
}

// task returns the task that the arguments describe, or an error that tells the model what is wrong with them.
func (a taskArgs) task() (tools.Task, error) {
	d := tools.Task{Agent: a.Agent, Needs: a.Needs, Prompt: strings.TrimSpace(a.Prompt), Files: a.Files}
	switch {
	case d.Agent != "" && len(d.Needs) > 0:
		return d, tools.Errorf(tools.InvalidArgs, "name the agent, or what it must be able to do, and not both")
	case len(d.Needs) > maxNeeds:
		return d, tools.Errorf(tools.InvalidArgs, "it needs %d things, at most %d are allowed", len(d.Needs), maxNeeds)
	case len(d.Files) > maxFiles:
		return d, tools.Errorf(tools.InvalidArgs, "there are %d files, at most %d are allowed: name their folder", len(d.Files), maxFiles)
	}
	return d, checkText("prompt", d.Prompt)
}

// touch says what a call that hands out a task touches. The copies of its files keep their marks.
func (a taskArgs) touch() tools.Touch {
	return tools.Touch{Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Passes: a.Files, Outward: tools.HandsOutTask{}}
}

// checkText returns what is wrong with a text for a sub-agent; nil if nothing is.
func checkText(name, text string) error {
	switch {
	case text == "":
		return tools.Errorf(tools.InvalidArgs, "the %s is empty: write what is to be done", name)
	case len(text) > maxPrompt:
		return tools.Errorf(tools.InvalidArgs, "the %s has %d bytes, at most %d are allowed: put the rest into a file", name, len(text), maxPrompt)
	}
	return nil
}

// New makes the tools task and sessions_spawn, and those that show sessions or send texts to them.
func New(d Backend) []tools.Tool {
	return append([]tools.Tool{
		tools.New(tools.Spec{
			Name: "task", Effect: tools.Idempotent, Permission: tools.Session, Touches: tools.Touches(taskArgs.touch),
			Description: "Hand a task to a sub-agent, which works in a session and a workspace of its own, and wait for its report. Several calls at once are worked on side by side. Give it all that it needs: it cannot ask you anything.",
		}, wait, tools.GivesTask(taskArgs.task)),
		tools.New(tools.Spec{
			Name: "sessions_spawn", Effect: tools.Idempotent, Permission: tools.Session, Touches: tools.Touches(taskArgs.touch),
			Description: "Hand a task to a sub-agent, and go on without waiting. Its report is told in this conversation by itself, once it is there.",
		}, func(ctx context.Context, call tools.Call, args taskArgs) (any, error) {
			what, err := args.task()
			if err != nil {
				return nil, err
			}
			return d.Spawn(ctx, call, what)
		}),
	}, sessionTools(d)...)
}

// wait handles a call of the tool task that was run, although it should have made the turn wait for the report.
func wait(context.Context, tools.Call, taskArgs) (any, error) {
	return nil, tools.Errorf(tools.PermissionDenied, "Nothing can be handed out from here: do it yourself.")
}
