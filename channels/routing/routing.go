// Package routing decides which session a message on a channel belongs to: with which agent, in which place and, if
// people have sessions of their own, with which person.
//
// routing.go makes the keys of sessions, choose.go chooses the agent, and scope.go warns if sessions are divided in a
// different way than before.
package routing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/sessions"
)

// How the messages on a channel are divided into sessions.
const (
	scopeThread  = "thread"  // one for each thread, or for each chat without threads
	scopeChannel = "channel" // one for each chat
	scopeUser    = "user"    // like scopeThread, but in groups one for each person
)

// A Book is the part of the channels' book (the record of sends, chats, people and asks) that a Router reads.
type Book interface {
	PrivateChatAt(ctx context.Context, at bus.Address) (person string, alone bool, err error)
	SessionAt(ctx context.Context, at bus.Address) (session string, err error)
	SessionOf(ctx context.Context, at bus.Address, message string) (session string, err error)
	OpenAsks(ctx context.Context) ([]bus.Ask, error)
}

// A Store is the part of the session store that a Router reads.
type Store interface {
	Find(ctx context.Context, key, cause string) (sessions.Entry, error)
	List(ctx context.Context, after string, limit int) ([]sessions.Info, error)
}

// A Router decides which sessions the messages on one channel belong to.
type Router struct {
	Agent  string         // the agent that answers if no route matches
	Routes func() []Route // as configured now; the first that matches decides
	Scope  string         // how conversations are divided: "thread", "channel" or "user"
	Prefix string         // what commands begin with
	Book   Book
	Store  Store
	// MaySplitByPerson reports whether all running processes can handle sessions of single people; an older release
	// can't.
	MaySplitByPerson func(ctx context.Context) (bool, error)
	Log              *slog.Logger
}

// Route returns where a message goes. It is the Route of a gateway.Gateway.
func (r *Router) Route(ctx context.Context, in bus.Inbound) (gateway.RouteResult, error) {
	if r.Scope == scopeUser && in.Group {
		if able, err := r.MaySplitByPerson(ctx); err != nil || !able {
			r.Log.Warn("a conversation of one person in a group waits: a process of an older release still serves, or it is not known",
				slog.String("channel", in.At.Channel), slog.Any("error", err))
			return gateway.RouteResult{}, gateway.ErrNotNow
		}
	}
	routes, user := r.Routes(), userOf(in)
	s := messageFacts{chat: in.At.Chat, user: user, text: in.Text, called: in.Called}
	if canBeNamed(routes, s) {
		var err error
		if s.current, err = r.currentAgent(ctx, in); err != nil {
			return gateway.RouteResult{}, fmt.Errorf("%w: %w", gateway.ErrNotNow, err)
		}
	}
	agent, text, named := choose(routes, s)
	agent = cmp.Or(agent, r.Agent)
	to := gateway.RouteResult{NamesAgent: named, Text: text}
	if named {
		to.Text = r.asCommand(text, in.Called)
	}
	var err error
	if to.Session, err = r.key(agent, in); err != nil {
		return gateway.RouteResult{}, err
	}
	for _, other := range candidates(routes, r.Agent, in.At.Chat, user) {
		if other == agent {
			continue
		}
		key, err := r.key(other, in)
		if err != nil {
			return gateway.RouteResult{}, err
		}
		to.OtherSessions = append(to.OtherSessions, key)
	}
	return to, nil
}

// asCommand turns the text after an agent's name into a command, if it would be one after the bot's name: a single
// word such as "stop", or a word with the platform's command prefix. It returns any other text unchanged.
func (r *Router) asCommand(text string, called bool) string {
	if rest, ok := strings.CutPrefix(text, r.Prefix); ok && r.Prefix != "" {
		return "/" + rest
	}
	switch word := strings.ToLower(text); word {
	case "stop", "status", "new", "help":
		if called {
			return "/" + word
		}
	}
	return text
}

// currentAgent returns the agent that a message is addressed to if it names none. It goes by the conversation that
// the message belongs to: the agent whose message it answers, or who is waiting for an answer from this person, or
// who people talk to in the thread. It returns "" if there is none.
func (r *Router) currentAgent(ctx context.Context, in bus.Inbound) (string, error) {
	answers := in.Answers
	if in.Pressed {
		answers = in.ReplyTo
	}
	if answers != "" {
		if session, err := r.Book.SessionOf(ctx, in.At, answers); err != nil || session != "" {
			return sessions.AgentOf(session), err
		}
	}
	asks, err := r.Book.OpenAsks(ctx)
	if err != nil {
		return "", err
	}
	for _, ask := range slices.Backward(asks) {
		if mayAnswer(in, ask) {
			return sessions.AgentOf(ask.Session), nil
		}
	}
	if in.At.Thread == "" {
		return "", nil
	}
	session, err := r.Book.SessionAt(ctx, in.At)
	return sessions.AgentOf(session), err
}

// mayAnswer reports whether a message can be the answer to an ask: words from the person who was asked a question,
// or a command that decides what was last asked in that place.
func mayAnswer(in bus.Inbound, ask bus.Ask) bool {
	said, _ := channels.AsCommand(in)
	if said.Kind == bus.Command {
		return slices.Contains([]string{"approve", "deny", "answer"}, said.Text) && (ask.At == in.At || slices.Contains(ask.Asked, in.At))
	}
	return ask.Kind == bus.AskQuestion && ask.Person == in.From.ID && ask.At == in.At && !isSubAgentSession(ask.Session)
}

// isSubAgentSession reports whether a session is a sub-agent's: words in the chat are meant for the agent that
// handed out the task, and only the command answers the sub-agent's question.
func isSubAgentSession(session string) bool {
	key, err := sessions.ParseKey(session)
	return err == nil && key.Channel == bus.SubAgents
}

// key returns the key of the session with an agent that a message belongs to.
func (r *Router) key(agent string, in bus.Inbound) (string, error) {
	if r.Scope == scopeUser && in.Group {
		return sessions.PersonalKey(agent, in.At.Channel, in.At.Chat, in.At.Thread, userOf(in))
	}
	return r.sharedKey(agent, in.At)
}

// sharedKey returns the key of the session with an agent that everybody at an address shares.
func (r *Router) sharedKey(agent string, at bus.Address) (string, error) {
	if r.Scope == scopeChannel {
		at.Thread = ""
	}
	return sessions.Key(agent, at.Channel, at.Chat, at.Thread)
}

// FindAuthor returns the session that contains a message that was edited or deleted, and the person who said it; ""
// if no session does. It also looks in the sessions that single people have in that chat.
func (r *Router) FindAuthor(ctx context.Context, change bus.Inbound) (session, person string, err error) {
	var keys []string
	for _, agent := range candidates(r.Routes(), r.Agent, change.At.Chat, "") {
		shared, err := r.sharedKey(agent, change.At)
		if err != nil {
			return "", "", nil //nolint:nilerr // if there is no session, nothing is known
		}
		keys = append(keys, shared)
		if r.Scope == scopeUser && change.Group {
			own, err := r.personalKeys(ctx, agent, change.At)
			if err != nil {
				return "", "", err
			}
			keys = append(keys, own...)
		}
	}
	for _, key := range keys {
		said, err := r.Store.Find(ctx, key, change.Of)
		if errors.Is(err, sessions.ErrNotFound) {
			continue
		}
		return key, said.Person, err
	}
	return "", "", nil
}

// personalKeys returns the keys of the sessions with an agent that single people have at an address.
func (r *Router) personalKeys(ctx context.Context, agent string, at bus.Address) (keys []string, err error) {
	first, err := sessions.PersonalKey(agent, at.Channel, at.Chat, at.Thread, "0")
	if err != nil {
		return nil, nil //nolint:nilerr // nobody can have one
	}
	prefix := strings.TrimSuffix(first, "0")
	for after := prefix; ; {
		page, err := r.Store.List(ctx, after, 100)
		if err != nil || len(page) == 0 {
			return keys, err
		}
		for _, one := range page {
			if !strings.HasPrefix(one.Key, prefix) {
				return keys, nil
			}
			keys = append(keys, one.Key)
		}
		after = page[len(page)-1].Key
	}
}

// ReplySession returns the session that a message at an address would belong to if somebody replied there; "" if
// that depends on who replies. Its error is the book's.
func (r *Router) ReplySession(ctx context.Context, at bus.Address) (session string, err error) {
	routes := r.Routes()
	s := messageFacts{chat: at.Chat}
	if r.Scope == scopeUser || slices.ContainsFunc(routes, func(one Route) bool { return one.User != "" && one.canMatch(at.Chat, "") }) {
		if s.user, err = r.onlyUser(ctx, at); err != nil || s.user == "" {
			return "", err // each person who replies there may have a different session
		}
	}
	if at.Thread != "" && canBeNamed(routes, s) {
		current, err := r.Book.SessionAt(ctx, at)
		if err != nil {
			return "", err
		}
		s.current = sessions.AgentOf(current)
	}
	agent, _, _ := choose(routes, s)
	session, err = r.sharedKey(cmp.Or(agent, r.Agent), at)
	if err != nil {
		return "", nil //nolint:nilerr // no message from there has a session either
	}
	return session, nil
}

// canBeNamed reports whether there is a route by which a message could name its agent.
func canBeNamed(routes []Route, s messageFacts) bool {
	return slices.ContainsFunc(routes, func(one Route) bool { return one.Mention != "" && one.canMatch(s.chat, s.user) })
}

// onlyUser returns the platform's id of the person who is alone with the bot in a chat; "" if nobody is known to
// be.
func (r *Router) onlyUser(ctx context.Context, at bus.Address) (user string, err error) {
	person, _, err := r.Book.PrivateChatAt(ctx, at)
	return userOf(bus.Inbound{From: bus.Person{ID: person}}), err
}

// userOf returns the platform's id of a message's sender.
func userOf(in bus.Inbound) string {
	_, user, _ := strings.Cut(in.From.ID, ":")
	return user
}
