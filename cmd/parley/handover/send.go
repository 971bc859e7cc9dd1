package handover

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions/tasks"
	"parley/tools"
)

// Send implements delegate.Backend: it gives a sub-agent more to do, or says something in
// another session, on behalf of an owner. A repeated call is the same message.
func (d *Service) Send(ctx context.Context, call tools.Call, session, text string) (any, error) {
	if session == call.Session {
		return nil, tools.Errorf(tools.InvalidArgs, "that is this session: what is said here needs no message")
	}
	t, err := d.find(ctx, call, session)
	if err != nil {
		return nil, err
	}
	if t.ID != "" {
		return d.spawn(ctx, call, tools.Delegation{Agent: t.Agent, Prompt: text}, session)
	}
	at, ok := addressOf(session)
	if !ok || !d.cfg.Listens(at) {
		return nil, tools.Errorf(tools.PermissionDenied, "nothing can be said in %s: nobody listens there", session)
	}
	in := bus.Inbound{
		ID: "sent:" + tasks.ID(call.Session, call.Key), Kind: bus.Said, From: bus.Person{ID: call.Person, Name: call.Called, Owner: call.Owner},
		At: at, Group: true, Mentioned: true, Text: text, SentAt: time.Now(),
	}
	if call.Untrusted { // these are not the owner's own words
		in.Text = "An agent has this told to you, which it has written after it had read what strangers may have written."
		in.Quotes = []bus.Quote{{Kind: bus.Told, Text: text}}
	}
	err = bus.PublishInbound(ctx, d.cfg.Bus, session, in, false)
	switch {
	case bus.IsRefusal(err):
		return nil, tools.Errorf(tools.ExecutionFailed, "nothing can be said in %s now: %v", session, err)
	case err != nil:
		return nil, fmt.Errorf("it is not known whether that was said; a repeated call says it once: %w", err)
	}
	return map[string]string{"session": session, "message": "It is said there, and answered there."}, nil
}

// addressOf returns the address of the chat in which the session with this key takes place; false
// if nobody can be spoken to there.
func addressOf(session string) (bus.Address, bool) {
	parts := strings.Split(session, ":")
	for i, part := range parts {
		said, err := url.PathUnescape(part)
		if err != nil {
			return bus.Address{}, false
		}
		parts[i] = said
	}
	if len(parts) < 3 || parts[1] == bus.SubAgents {
		return bus.Address{}, false
	}
	at := bus.Address{Channel: parts[1], Chat: parts[2]}
	if len(parts) > 3 {
		at.Thread = parts[3]
	}
	return at, true
}
