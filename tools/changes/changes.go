// Package changes provides the tool that lists the files that turns have changed in a session's
// workspace.
//
// The tool stores nothing itself: the function passed to New knows what was changed, and by which
// turn. Only people can undo changes, by saying /undo.
package changes

import (
	"context"
	"fmt"
	"time"

	"parley/tools"
)

const (
	defaultTurns = 5
	maxTurns     = 20
	maxFiles     = 200
)

// A Turn is one turn that has changed files, or one undo.
type Turn struct {
	Number int    `json:"number"` // the number that people give to undo the turn
	At     string `json:"at"`
	// Current says that this call is part of the turn.
	Current bool `json:"current,omitempty"`
	Undone  bool `json:"undone,omitempty"`
	// Undoes is the number of the turn that this entry undid; 0 if it is not an undo.
	Undoes  int    `json:"undoes,omitempty"`
	Files   []File `json:"files"`
	More    int    `json:"more_files,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// A File is one path that a turn has changed.
type File struct {
	Path   string `json:"path"` // a folder's path ends in a slash
	Change string `json:"change"`
}

// A List holds changes, the newest turn first.
type List struct {
	Turns []Turn `json:"turns"`
	Older int    `json:"older,omitempty"` // how many turns are kept but not listed
}

type args struct {
	Turn  int `json:"turn,omitempty" jsonschema:"the number of one turn; left out: the newest ones"`
	Limit int `json:"limit,omitempty" jsonschema:"the most turns, the newest ones: 5 if left out, at most 20"`
}

// New makes the tool workspace_changes. The function list returns all turns that are kept, the
// newest first, with all files.
func New(list func(ctx context.Context, call tools.Call) ([]Turn, error)) tools.Tool {
	return tools.New(tools.Spec{
		Name: "workspace_changes", Effect: tools.Pure, Permission: tools.FileRead, Timeout: 15 * time.Second, MaxTimeout: time.Minute,
		Touches: tools.TouchesNothing(),
		Description: "List which files of the workspace were created, modified, deleted, or given other permissions (mode), by this turn so far and by earlier ones. " +
			"People take back what a turn has changed by saying /undo, or /undo NUMBER; you cannot.",
	}, func(ctx context.Context, call tools.Call, a args) (any, error) {
		if a.Turn < 0 || a.Limit < 0 || a.Limit > maxTurns {
			return nil, tools.Errorf(tools.InvalidArgs, "turn is a number from this list, and limit is from 1 to %d", maxTurns)
		}
		all, err := list(ctx, call)
		if err != nil {
			return nil, fmt.Errorf("what was changed cannot be looked up now: %w", err)
		}
		return selectTurns(all, a)
	})
}

// selectTurns returns the turns that a call asked for, limited to as many turns and files as a
// model can read.
func selectTurns(all []Turn, a args) (List, error) {
	l := List{Turns: []Turn{}}
	most, files := a.Limit, maxFiles
	if most == 0 {
		most = defaultTurns
	}
	for _, t := range all {
		if a.Turn != 0 && t.Number != a.Turn {
			continue
		}
		if len(l.Turns) == most {
			l.Older++
			continue
		}
		if over := len(t.Files) - files; over > 0 {
			t.Files, t.More = t.Files[:files], over
		}
		if t.Files == nil {
			t.Files = []File{}
		}
		files -= len(t.Files)
		l.Turns = append(l.Turns, t)
	}
	if a.Turn != 0 && len(l.Turns) == 0 {
		return List{}, tools.Errorf(tools.NotFound, "no turn %d is kept: leave turn out to see which are", a.Turn)
	}
	return l, nil
}
