// Package history reads earlier messages in chats for agents, on behalf of people who are in these chats.
//
// An agent may always read the chat of its own conversation; it may read another chat only if that chat's channel
// says that both the bot and the person who asks are in it. If a platform gives bots no history, the conversation's
// own log is read instead.
package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions"
	"parley/tools"
	"parley/tools/history"
)

// A Source is a channel whose chats the agent may read.
type Source struct {
	channels.Channel
	// Listens reports whether the bot listens in a group. Other groups can't be read.
	Listens func(chat string) bool
}

// A Reader reads earlier messages in chats.
type Reader struct {
	Channels map[string]Source
	Log      sessions.Reader
}

// Read returns the messages that a question asks for. Its errors are meant for the model.
func (r Reader) Read(ctx context.Context, q history.Question) (history.Answer, error) {
	own, err := bus.ParseAddress(q.From)
	if err != nil {
		return history.Answer{}, tools.Errorf(tools.ExecutionFailed, "it is not known where this conversation takes place")
	}
	at, isOwn, err := r.find(ctx, own, q)
	if err != nil {
		return history.Answer{}, err
	}
	h, can := channels.AsHistorian(r.Channels[at.Channel].Channel)
	if isOwn && !can {
		return r.readLog(ctx, own, q)
	}
	if !isOwn {
		if err := r.checkMayRead(ctx, at, q.Person); err != nil {
			return history.Answer{}, err
		}
	}
	said, older, err := h.History(ctx, at, q.Since, q.Limit)
	if err != nil {
		return history.Answer{}, errorForModel(at, err)
	}
	a := history.Answer{Chat: at.String(), Older: older}
	for _, u := range said {
		a.Messages = append(a.Messages, history.Message{At: u.At.UTC().Format(time.RFC3339), From: u.From.NameAndID(), Thread: u.Thread, Text: u.Text})
	}
	return a, nil
}

// find returns the address that a question refers to, and whether that is the conversation itself (own), or the
// chat in which it takes place.
func (r Reader) find(ctx context.Context, own bus.Address, q history.Question) (at bus.Address, isOwn bool, err error) {
	if q.Chat == "" && (q.Channel == "" || q.Channel == own.Channel) {
		return own, true, nil
	}
	channel, chat := q.Channel, q.Chat
	for _, given := range []string{q.Chat, q.Channel} { // a complete address
		if named, err := bus.ParseAddress(given); err == nil && r.has(named.Channel) {
			channel, chat = named.Channel, named.Chat
			break
		}
	}
	if channel == "" {
		channel = own.Channel
	}
	if !r.has(channel) {
		return at, false, tools.Errorf(tools.InvalidArgs, "there is no channel %q whose chats could be read", channel)
	}
	if chat == "" {
		return at, false, tools.Errorf(tools.InvalidArgs, "chat is missing: name the chat on %s", channel)
	}
	if channel == own.Channel && strings.TrimPrefix(chat, "#") == own.Chat {
		return bus.Address{Channel: channel, Chat: own.Chat}, true, nil
	}
	h, can := channels.AsHistorian(r.Channels[channel].Channel)
	if !can {
		return at, false, tools.Errorf(tools.PermissionDenied, "%s doesn't show bots earlier messages. In this conversation, you can read what was said to you: leave out channel and chat.", channel)
	}
	id, err := h.FindChat(ctx, chat)
	if err != nil {
		return at, false, errorForModel(bus.Address{Channel: channel, Chat: chat}, err)
	}
	if id == "" {
		return at, false, errDenied(channel, chat)
	}
	at = bus.Address{Channel: channel, Chat: id}
	return at, at.Channel == own.Channel && at.Chat == own.Chat, nil
}

// has reports whether there is a channel with that name.
func (r Reader) has(channel string) bool {
	_, ok := r.Channels[channel]
	return ok
}

// errDenied returns the error for a chat that may not be read. It does not reveal whether the chat exists.
func errDenied(channel, chat string) error {
	return tools.Errorf(tools.PermissionDenied, "%q on %s cannot be read: you and the person who asks both have to be in it. This conversation can always be read: leave channel and chat out.", chat, channel)
}

// MayRead reports whether a person may read a chat other than the one in which they ask: they and the bot must be
// in it, and the bot must listen there. An error means that this is not known now.
func (r Reader) MayRead(ctx context.Context, at bus.Address, person string) (bool, error) {
	source, ok := r.Channels[at.Channel]
	if !ok || !strings.HasPrefix(person, at.Channel+":") || !source.Listens(at.Chat) {
		return false, nil
	}
	roster, ok := channels.AsRoster(source.Channel)
	if !ok {
		return false, nil
	}
	in, err := roster.IsIn(ctx, at.Chat, person)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Rejected {
		return false, nil
	}
	return in, err
}

// IsClosed reports whether the thread of an address is read by only some of those who read the chat. If its channel
// no longer exists, nobody knows, so the answer is true.
func (r Reader) IsClosed(ctx context.Context, at bus.Address) (bool, error) {
	source, ok := r.Channels[at.Channel]
	if !ok {
		return true, nil
	}
	return channels.IsClosed(ctx, source.Channel, at)
}

// Link returns the web address at which a message is found on its platform; see channels.Linker. It returns "" if
// the channel no longer exists.
func (r Reader) Link(ctx context.Context, at bus.Address, message string) (string, error) {
	source, ok := r.Channels[at.Channel]
	if !ok {
		return "", nil
	}
	return channels.LinkTo(ctx, source.Channel, at, message)
}

// checkMayRead returns nil if the person who asks may read a chat other than the conversation's.
func (r Reader) checkMayRead(ctx context.Context, at bus.Address, person string) error {
	may, err := r.MayRead(ctx, at, person)
	if err != nil {
		return errorForModel(at, err)
	}
	if !may {
		return errDenied(at.Channel, at.Chat)
	}
	return nil
}

// errorForModel turns a platform's error into one for the model to read.
func errorForModel(at bus.Address, err error) error {
	refusal, ok := errors.AsType[*channels.SendError](err)
	switch {
	case ok && refusal.Fault == channels.Rejected:
		return errDenied(at.Channel, at.Chat)
	case ok && refusal.RateLimited:
		return tools.Errorf(tools.ExecutionFailed, "%s wants to be asked less often: try again later, or read less", at.Channel)
	case ok:
		return tools.Errorf(tools.ExecutionFailed, "%s did not answer (%s): try again", at.Channel, refusal.Code)
	}
	return tools.Errorf(tools.ExecutionFailed, "%s did not answer: try again", at.Channel)
}

// readLog answers a question from the conversation's log, for platforms that give bots no history.
func (r Reader) readLog(ctx context.Context, own bus.Address, q history.Question) (history.Answer, error) {
	a := history.Answer{Chat: own.String(), Note: fmt.Sprintf("%s doesn't show bots earlier messages: these are the messages sent to you here, and your answers.", own.Channel)}
	for e, err := range r.Log.Read(ctx, q.Session, 1) {
		if errors.Is(err, sessions.ErrNotFound) {
			break
		}
		if err != nil {
			return a, tools.Errorf(tools.ExecutionFailed, "the log of this conversation cannot be read now: try again")
		}
		if e.At.Before(q.Since) {
			continue
		}
		m := history.Message{At: e.At.UTC().Format(time.RFC3339)}
		switch e.Kind {
		case sessions.KindUser:
			said, err := sessions.Decode[sessions.User](e)
			if err != nil {
				continue
			}
			m.From, m.Text = bus.Person{ID: e.Person, Name: said.Name}.NameAndID(), said.Text
		case sessions.KindText:
			said, err := sessions.Decode[sessions.Text](e)
			if err != nil {
				continue
			}
			m.From, m.Text = "you", said.Text
		default:
			continue
		}
		if strings.TrimSpace(m.Text) == "" {
			continue
		}
		a.Messages = append(a.Messages, m)
		if len(a.Messages) > q.Limit {
			a.Messages, a.Older = a.Messages[1:], true
		}
	}
	return a, nil
}
