package tools

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
)

// A Showing is what people see when a call needs their approval: what it would do, in its own terms, such as a
// command line, a diff, or a message. It replaces the arguments that it shows completely; the others are shown by
// name and value.
type Showing struct {
	Text      string   // of any length and number of lines; "" shows all arguments by name
	ShownArgs []string // the names of the arguments that Text shows completely
}

// Shows turns a function of a call's arguments into one for Spec.Shows.
func Shows[Args any](show func(args Args) Showing) func(context.Context, Call) Showing {
	return func(_ context.Context, call Call) Showing {
		var args Args
		if json.Unmarshal(call.Args, &args) != nil {
			return Showing{}
		}
		return show(args)
	}
}

// ShowingOf returns what people see when a call of a tool needs their approval.
func ShowingOf(ctx context.Context, t Tool, call Call) Showing {
	shows := t.Spec().Shows
	if shows == nil {
		return Showing{}
	}
	return shows(ctx, call)
}

// WholeLine returns all of a text on one line: a text with line breaks is quoted.
func WholeLine(text string) string {
	if strings.ContainsAny(text, "\r\n") {
		return strconv.Quote(text)
	}
	return text
}
