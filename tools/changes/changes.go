// Package changes is the tool that lists what turns have changed in a session's workspace.
//
// It keeps nothing itself: the function that New gets knows what was changed, and by which
// turn. To undo is for people, who say /undo.
package changes

import (
	"context"
	"fmt"
	"time"

	"parley/tools"
)

const (
	usual     = 5
	mostTurns = 20
	mostFiles = 200
)

// A Turn is one turn that has changed files, or one undo.
type Turn struct {
	Number int    `json:"number"` // by which people undo it
	At     string `json:"at"`
	// Current says that it is the turn of the call.
	Current bool `json:"current,omitempty"`
	Undone  bool `json:"undone,omitempty"`
	// Undoes is the number of the turn that it has undone; 0 if it is none.
	Undoes  int    `json:"undoes,omitempty"`
	Files   []File `json:"files"`
	More    int    `json:"more_files,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// A File is one path that was changed.
type File struct {
	Path   string `json:"path"` // a folder's ends in a slash
	Change string `json:"change"`
}

// A List is what was changed, the newest first.
type List struct {
	Turns []Turn `json:"turns"`
	Older int    `json:"older,omitempty"` // turns that are kept and not listed
}

type args struct {
	Turn  int `json:"turn,omitempty" jsonschema:"the number of one turn; left out: the newest ones"`
	Limit int `json:"limit,omitempty" jsonschema:"the most turns, the newest ones: 5 if left out, at most 20"`
}

// New makes the tool. List returns what is known, the newest first, with all files.
func New(list func(ctx context.Context, call tools.Call) ([]Turn, error)) tools.Tool {
	return tools.New(tools.Spec{
		Name: "workspace_changes", Effect: tools.Pure, Permission: tools.FileRead, Timeout: 15 * time.Second, MaxTimeout: time.Minute,
		Description: "List which files of the workspace were created, modified, deleted, or given other permissions (mode), by this turn so far and by earlier ones. " +
			"People take back what a turn has changed by saying /undo, or /undo NUMBER; you cannot.",
	}, func(ctx context.Context, call tools.Call, a args) (any, error) {
		if a.Turn < 0 || a.Limit < 0 || a.Limit > mostTurns {
			return nil, tools.Errorf(tools.InvalidArgs, "turn is a number from this list, and limit is from 1 to %d", mostTurns)
		}
		all, err := list(ctx, call)
		if err != nil {
			return nil, fmt.Errorf("what was changed cannot be looked up now: %w", err)
		}
		return chosen(all, a)
	})
}

// chosen is as much of a list as was asked for and as is bearable.
func chosen(all []Turn, a args) (List, error) {
	l := List{Turns: []Turn{}}
	most, files := a.Limit, mostFiles
	if most == 0 {
		most = usual
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
