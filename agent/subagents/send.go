package subagents

import (
	"context"
	"fmt"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/sessions/subagents"
	"parley/tools"
)

// Send implements subagenttools.Backend: it gives a sub-agent more to do, or says something in another session
// on an owner's behalf. A repeated call sends the same message.
func (d *Service) Send(ctx context.Context, call tools.Call, session, text string) (any, error) {
	if session == call.Session {
		return nil, tools.Errorf(tools.InvalidArgs, "that is this session: what is said here needs no message")
	}
	t, err := d.find(ctx, call, session)
	if err != nil {
		return nil, err
	}
	if t.ID != "" {
		return d.spawn(ctx, call, tools.Task{Agent: t.Agent, Prompt: text}, session)
	}
	at, ok := addressOf(session)
	if !ok || !d.cfg.AnswersAt(at) {
		return nil, tools.Errorf(tools.PermissionDenied, "nothing can be said in %s: nobody listens there", session)
	}
	in := bus.Inbound{
		ID: "sent:" + subagents.ID(call.Session, call.Key), Kind: bus.Said, From: bus.Person{ID: call.Person, Name: call.PersonName, Owner: call.Owner},
		At: at, Group: true, Mentioned: true, Text: text, SentAt: time.Now(),
	}
	if call.Untrusted { // then the text isn't the owner's own words
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

// addressOf returns the address of the chat that the session with this key belongs to; false if nobody can be
// reached there.
func addressOf(session string) (bus.Address, bool) {
	key, err := sessions.ParseKey(session)
	if err != nil || key.Channel == bus.SubAgents {
		return bus.Address{}, false
	}
	return bus.Address{Channel: key.Channel, Chat: key.Chat, Thread: key.Thread}, true
}
