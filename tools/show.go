package tools

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
)

// A Showing is what people are shown who are to approve a call: what it would do, as it would do it, such as a
// command line, a diff, or a message. It takes the place of the arguments that it shows whole; the others
// are shown by their names and values.
type Showing struct {
	Text string   // of any length and number of lines; "" shows all arguments by their names
	Of   []string // the names of the arguments that Text shows whole
}

// Shows makes a function for Spec.Shows of a function that returns what people are shown of a call with
// these arguments.
func Shows[Args any](show func(args Args) Showing) func(context.Context, Call) Showing {
	return func(_ context.Context, call Call) Showing {
		var args Args
		if json.Unmarshal(call.Args, &args) != nil {
			return Showing{}
		}
		return show(args)
	}
}

// ShowingOf returns what people are shown who are to approve a call of a tool.
func ShowingOf(ctx context.Context, t Tool, call Call) Showing {
	shows := t.Spec().Shows
	if shows == nil {
		return Showing{}
	}
	return shows(ctx, call)
}

// WholeLine returns a text on one line, without leaving anything of it out: one with line breaks is quoted.
func WholeLine(text string) string {
	if strings.ContainsAny(text, "\r\n") {
		return strconv.Quote(text)
	}
	return text
}
