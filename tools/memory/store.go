package memory

import (
	"context"
	"strings"

	"parley/tools"
)

// The scopes: whom or what a memory belongs to.
const (
	ofSession = "session"
	ofPerson  = "person"
	ofAgent   = "agent"
)

// MaxStored limits what is remembered about one person, or by one agent, in bytes, because it goes
// into every prompt.
const MaxStored = 64 << 10

// A Store stores what agents remember beyond one session. Scope says whether it is about a person
// or belongs to an agent, and owner which one.
type Store interface {
	// Memory returns what is remembered, or "" if nothing is; untrusted says that strangers may have written some of
	// it.
	Memory(ctx context.Context, scope, owner string) (content string, untrusted bool, err error)
	// Remember replaces what is remembered with what change returns for it; change may be called
	// more than once. A call that was done before changes nothing. overwrite says that nothing of
	// the old content stays.
	Remember(ctx context.Context, scope, owner, call string, overwrite, untrusted bool, change func(old string) (string, error)) error
}

// isStored reports whether a scope's memory is in the store rather than in the session's file.
func isStored(scope string) bool { return scope != "" && scope != ofSession }

// owner returns whose memory a call is for: the id of the person or the name of the agent. What is
// remembered about a person is for that person only, so owner returns an error for the model if
// others can read along.
func (k memoryTools) owner(call tools.Call, scope string) (string, error) {
	switch {
	case k.store == nil:
		return "", tools.Errorf(tools.PermissionDenied, "there is only this conversation's memory here: leave scope out")
	case scope == ofAgent:
		return call.Agent, nil
	case !call.Private || call.Person == "":
		return "", tools.Errorf(tools.PermissionDenied, "what is remembered of a person is there in a private chat with them alone, and others read along here: use scope session, or say it to them privately")
	}
	return call.Person, nil
}

func (k memoryTools) readStored(ctx context.Context, call tools.Call, args readArgs) (any, error) {
	owner, err := k.owner(call, args.Scope)
	if err != nil {
		return nil, err
	}
	content, untrusted, err := k.store.Memory(ctx, args.Scope, owner)
	if err != nil {
		return nil, tools.DirError(err)
	}
	result := readResult(toText([]byte(content)), args.Query)
	if content == "" && args.Query == "" {
		result = map[string]string{"content": "", "message": "Nothing is remembered"}
	}
	if untrusted {
		return tools.Untrusted{Value: result}, nil
	}
	return result, nil
}

// writeStored writes to the store. No matter how often a call is repeated after a crash, and by
// which process, its text is written once.
func (k memoryTools) writeStored(ctx context.Context, call tools.Call, args writeArgs) (any, error) {
	owner, err := k.owner(call, args.Scope)
	if err != nil {
		return nil, err
	}
	overwrite := args.Mode == "overwrite"
	switch {
	case args.Scope == ofAgent && !call.Owner:
		return nil, tools.Errorf(tools.PermissionDenied, "only owners may have you write what all conversations read: use scope session or person")
	case !overwrite && strings.TrimSpace(args.Content) == "":
		return nil, tools.Errorf(tools.InvalidArgs, "content is empty: give what is to be kept")
	}
	err = k.store.Remember(ctx, args.Scope, owner, call.Key, overwrite, call.Untrusted, func(old string) (string, error) {
		if overwrite {
			old = ""
		}
		next, err := appendParagraph([]byte(old), args.Content, MaxStored)
		return string(next), err
	})
	if err != nil {
		return nil, tools.DirError(err)
	}
	return writeResult(args), nil
}
