// Package todo provides the tools with which an agent keeps a list of what it is about to do, which
// people see.
//
// The list is a file in the session's workspace. It is always written as a whole, so writing it
// again changes nothing. Each change is reported as progress, which chats and terminals show while
// the turn runs.
package todo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

	"parley/tools"
	"parley/tools/plainjson"
)

// File is the path of the file in the workspace that contains the list.
const File = ".agent/todo.json"

// Limits of a list.
const (
	maxItems = 50
	maxText  = 300 // characters
	maxBytes = 1 << 20
)

// The states of an item.
const (
	pending = "pending"
	doing   = "doing"
	done    = "done"
)

// A Dir is the directory that contains the list's file.
type Dir interface {
	fs.FS
	// Write replaces a file's whole content, or nothing.
	Write(name string, content []byte) error
}

// An item is one thing to do.
type item struct {
	Text  string `json:"text" jsonschema:"what is to be done, in a few words"`
	State string `json:"state" jsonschema:"pending, doing or done"`
}

type list struct {
	Items []item `json:"items" jsonschema:"the whole list, in order"`
}

type readArgs struct{}

type todoTools struct {
	open func(ctx context.Context, call tools.Call) (Dir, error)
}

// New makes the tools todo_read and todo_write. open returns the directory of a call's session.
func New(open func(ctx context.Context, call tools.Call) (Dir, error)) []tools.Tool {
	k := todoTools{open}
	return []tools.Tool{
		tools.New(tools.Spec{
			Name: "todo_read", Effect: tools.Pure, Permission: tools.FileRead, Timeout: 5 * time.Second, MaxTimeout: 30 * time.Second,
			Touches:     tools.TouchesAlways(tools.Touch{Reads: tools.Paths{File}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}),
			Description: "Read the list of what is to be done in this conversation, as todo_write wrote it.",
		}, k.read),
		tools.New(tools.Spec{
			Name: "todo_write", Effect: tools.Idempotent, Permission: tools.FileWrite, Timeout: 5 * time.Second, MaxTimeout: 30 * time.Second,
			Touches:     tools.TouchesAlways(tools.Touch{Reads: tools.NoFiles{}, Writes: tools.Paths{File}, Outward: tools.NothingOutward{}}),
			Description: "Write down what is to be done, for work of three steps or more, and keep it up to date: people see it while you work. It replaces the whole list; an empty one removes it.",
		}, k.write),
	}
}

func (k todoTools) read(ctx context.Context, call tools.Call, _ readArgs) (any, error) {
	dir, err := k.open(ctx, call)
	if err != nil {
		return nil, tools.DirError(err)
	}
	now := list{Items: []item{}}
	file, err := dir.Open(File)
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil
	}
	if err != nil {
		return nil, tools.DirError(err)
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxBytes))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, tools.DirError(err)
	}
	if json.Unmarshal(raw, &now) != nil {
		return nil, tools.Errorf(tools.ExecutionFailed, "the list cannot be read: something else has written %s. Write it anew with todo_write.", File)
	}
	return now, nil
}

// write checks the list, stores it, and shows it to the people who watch.
func (k todoTools) write(ctx context.Context, call tools.Call, args list) (any, error) {
	if len(args.Items) > maxItems {
		return nil, tools.Errorf(tools.InvalidArgs, "the list has %d items, at most %d are allowed: put several steps into one", len(args.Items), maxItems)
	}
	now := list{Items: []item{}}
	for i, it := range args.Items {
		it.Text = strings.Join(strings.Fields(it.Text), " ")
		switch n := utf8.RuneCountInString(it.Text); {
		case n == 0:
			return nil, tools.Errorf(tools.InvalidArgs, "item %d says nothing: give a text", i+1)
		case n > maxText:
			return nil, tools.Errorf(tools.InvalidArgs, "item %d has %d characters, at most %d are allowed", i+1, n, maxText)
		}
		if it.State != pending && it.State != doing && it.State != done {
			return nil, tools.Errorf(tools.InvalidArgs, "item %d has no state that there is: give %s, %s or %s", i+1, pending, doing, done)
		}
		now.Items = append(now.Items, it)
	}
	dir, err := k.open(ctx, call)
	if err != nil {
		return nil, tools.DirError(err)
	}
	raw, err := plainjson.Marshal(now)
	if err != nil { // strings always marshal
		panic(err)
	}
	if err := dir.Write(File, raw); err != nil {
		return nil, tools.DirError(err)
	}
	if call.Progress != nil {
		call.Progress(progressText(now.Items))
	}
	return now, nil
}

const (
	maxShownItems = 12 // how many items people are shown
	maxShownText  = 80 // characters of each
)

// progressText returns a list as people see it: how much of it is done, and a line for each item.
// In a long list it leaves out completed items first.
func progressText(items []item) string {
	var lines []string
	finished := 0
	for _, it := range items {
		if it.State == done {
			finished++
		}
	}
	left := len(items)
	for _, it := range items {
		if left > maxShownItems && it.State == done {
			left--
			continue
		}
		if len(lines) == maxShownItems {
			lines = append(lines, fmt.Sprintf("… and %d more", left-maxShownItems))
			break
		}
		text := it.Text
		if utf8.RuneCountInString(text) > maxShownText {
			text = string([]rune(text)[:maxShownText]) + "…"
		}
		lines = append(lines, map[string]string{pending: "☐", doing: "▶", done: "☑"}[it.State]+" "+text)
	}
	return strings.Join(append([]string{fmt.Sprintf("%d of %d done", finished, len(items))}, lines...), "\n")
}
