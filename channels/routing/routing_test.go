package routing_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/channels/routing"
	"parley/channels/sqlbook"
	"parley/sessions/sqlstore"
)

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newRouter makes a Router over a real book and store.
func newRouter(t *testing.T, scope string, routes ...routing.Route) (*routing.Router, *sqlbook.Book) {
	t.Helper()
	book, err := sqlbook.Open(t.Context(), filepath.Join(t.TempDir(), "book.db"))
	requireNoError(t, err)
	t.Cleanup(func() { requireNoError(t, book.Close()) })
	store, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	requireNoError(t, err)
	t.Cleanup(func() { requireNoError(t, store.Close()) })
	return &routing.Router{
		Agent: "main", Scope: scope, Prefix: "!", Book: book, Store: store, Log: slog.New(slog.DiscardHandler),
		MaySplitByPerson: func(context.Context) (bool, error) { return true, nil },
		Routes:           func() []routing.Route { return routes },
	}, book
}

// groupMessage returns a person's message in a group, after the bot's name.
func groupMessage(chat, user, text string) bus.Inbound {
	return bus.Inbound{ID: "m", From: bus.Person{ID: "c:" + user}, At: bus.Address{Channel: "c", Chat: chat}, Group: true, Mentioned: true, Called: true, Text: text}
}

func mustRoute(t *testing.T, r *routing.Router, in bus.Inbound) gateway.RouteResult {
	t.Helper()
	to, err := r.Route(t.Context(), in)
	if err != nil {
		t.Errorf("%q has no session: %v", in.Text, err)
	}
	return to
}

// Everything that a route names must match; the first matching route decides, and the word that names the agent
// is removed.
func TestTheFirstRouteThatMatchesDecides(t *testing.T) {
	r, _ := newRouter(t, "thread",
		routing.Route{Chat: "secret", User: "1", Mention: "ops", Agent: "root"},
		routing.Route{Mention: "ops", Agent: "ops"},
		routing.Route{User: "7", Agent: "boss"},
		routing.Route{Chat: "lab", Agent: "research"},
		routing.Route{Mention: "résumé", Agent: "hr"},
	)
	for _, c := range []struct {
		chat, user, text string
		want, rest       string
	}{
		{"g", "1", "hello", "main", "hello"},
		{"g", "1", "ops what is up?", "ops", "what is up?"},
		{"g", "1", "OPS: what is up?", "ops", "what is up?"},
		{"g", "1", "Ops,\nlook", "ops", "look"},
		{"g", "1", "opsis fine", "main", "opsis fine"},
		{"g", "1", "the ops team", "main", "the ops team"},
		{"g", "1", "[file: a.png] ops what is it?", "ops", "[file: a.png] what is it?"},
		{"g", "1", "RÉSUMÉ read it", "hr", "read it"},
		{"g", "1", "ops", "ops", "ops"},
		{"g", "1", "ops stop", "ops", "/stop"},
		{"g", "1", "ops !compact", "ops", "/compact"},
		{"g", "1", "ops /status", "ops", "/status"},
		{"secret", "1", "ops reboot", "root", "reboot"},
		{"secret", "2", "ops reboot", "ops", "reboot"},
		{"g", "7", "hello", "boss", "hello"},
		{"g", "7", "ops hello", "ops", "hello"},
		{"lab", "1", "hello", "research", "hello"},
		{"lab", "7", "hello", "boss", "hello"},
	} {
		to := mustRoute(t, r, groupMessage(c.chat, c.user, c.text))
		if to.Session != c.want+":c:"+c.chat || to.Text != c.rest || to.NamesAgent != (c.rest != c.text || c.text == "ops") {
			t.Errorf("%s in %s says %q: %+v, want %s and %q", c.user, c.chat, c.text, to, c.want, c.rest)
		}
		for _, other := range to.OtherSessions {
			if other == to.Session {
				t.Errorf("%q: its own session is among the others: %+v", c.text, to)
			}
		}
	}
	if to := mustRoute(t, r, groupMessage("secret", "1", "hello")); strings.Join(to.OtherSessions, " ") != "root:c:secret ops:c:secret hr:c:secret" {
		t.Errorf("others who listen there: %q", to.OtherSessions)
	}
}

// Without the bot's name, only a word with a colon names an agent, because "ops" may be the first word of a
// sentence.
func TestWithoutTheBotsNameAnAgentNeedsAColon(t *testing.T) {
	r, _ := newRouter(t, "thread", routing.Route{Mention: "ops", Agent: "ops"})
	for text, want := range map[string]string{"ops are down again": "main", "ops: are you there?": "ops", "ops, are you there?": "main", "ops: stop": "ops"} {
		in := groupMessage("1", "1", text)
		in.Called, in.Group = false, false
		if to := mustRoute(t, r, in); to.Session != want+":c:1" {
			t.Errorf("%q goes to %s, want %s", text, to.Session, want)
		}
	}
}

// A message that names no agent belongs to the agent whose message it answers, who has asked this person, or
// who people talk to in the thread.
func TestAMessageWithoutAnAgentStaysInItsConversation(t *testing.T) {
	r, book := newRouter(t, "thread",
		routing.Route{Mention: "ops", Agent: "ops"}, routing.Route{Mention: "research", Agent: "research"}, routing.Route{User: "9", Mention: "root", Agent: "root"})
	thread := bus.Address{Channel: "c", Chat: "g", Thread: "7"}
	requireNoError(t, book.AssignSession(t.Context(), channels.Chat{Address: thread, Session: "ops:c:g:7", Group: true, Seen: time.Now()}))
	send := channels.Send{ID: "s", To: bus.Address{Channel: "c", Chat: "g"}, Session: "research:c:g", Parts: []channels.SentPart{{Text: "x", State: channels.Queued}}}
	_, _, err := book.Begin(t.Context(), send)
	requireNoError(t, err)
	requireNoError(t, book.Mark(t.Context(), "s", 0, channels.SentPart{State: channels.Sent, PlatformID: "77"}))
	requireNoError(t, book.OpenAsk(t.Context(), bus.Ask{
		ID: "abcdefghijklmnop", Kind: bus.AskQuestion, Session: "ops:c:h", Turn: "t", Call: "k", Person: "c:1", Question: "Which?",
		At: bus.Address{Channel: "c", Chat: "h"}, Made: time.Now(), Expires: time.Now().Add(time.Hour),
	}))
	check := func(what string, in bus.Inbound, want string) {
		t.Helper()
		if to := mustRoute(t, r, in); to.Session != want {
			t.Errorf("%s goes to %s, want %s", what, to.Session, want)
		}
	}
	follow := groupMessage("g", "2", "and why?")
	follow.At = thread
	check("what follows in the thread", follow, "ops:c:g:7")
	follow.Text = "research why?"
	check("another agent's name in the thread", follow, "research:c:g:7")
	answer := groupMessage("g", "2", "no, the other one")
	answer.Answers = "77"
	check("a reply to an agent's message", answer, "research:c:g")
	answer.Answers = "78"
	check("a reply to a person's message", answer, "main:c:g")
	press := groupMessage("g", "2", "/new")
	press.Pressed, press.ReplyTo = true, "77"
	check("a press of an agent's button", press, "research:c:g")
	check("the answer of who was asked", groupMessage("h", "1", "the left one"), "ops:c:h")
	requireNoError(t, book.OpenAsk(t.Context(), bus.Ask{
		ID: "cbcdefghijklmnop", Kind: bus.AskQuestion, Session: "research:agent:p:a", Turn: "t", Call: "k", Person: "c:3", Question: "Which?",
		At: bus.Address{Channel: "c", Chat: "h"}, Made: time.Now(), Expires: time.Now().Add(time.Hour),
	}))
	check("a word where a sub-agent has asked", groupMessage("h", "3", "hurry"), "main:c:h")
	check("the word of somebody else", groupMessage("h", "2", "the left one"), "main:c:h")
	check("another command of who was asked", groupMessage("h", "1", "/new"), "main:c:h")
	requireNoError(t, book.OpenAsk(t.Context(), bus.Ask{
		ID: "bbcdefghijklmnop", Kind: bus.AskApproval, Session: "research:c:h", Turn: "t", Call: "k2", Person: "c:1", Tool: "exec_shell", Hash: "x",
		At: bus.Address{Channel: "c", Chat: "h"}, Asked: []bus.Address{{Channel: "c", Chat: "h"}, {Channel: "c", Chat: "owners"}}, Made: time.Now(), Expires: time.Now().Add(time.Hour),
	}))
	check("an owner's approval", groupMessage("h", "2", "/approve"), "research:c:h")
	check("an owner's refusal elsewhere", groupMessage("owners", "2", "/deny no"), "research:c:owners")
	check("the answer of who was asked, still", groupMessage("h", "1", "the left one"), "ops:c:h")
	// A conversation of an agent whom this person may not call is none of theirs.
	requireNoError(t, book.AssignSession(t.Context(), channels.Chat{Address: thread, Session: "root:c:g:7", Group: true, Seen: time.Now()}))
	follow.Text = "go on"
	check("in a thread of another's agent", follow, "main:c:g:7")
	follow.From.ID = "c:9"
	check("in a thread of one's own agent", follow, "root:c:g:7")
	if session, err := r.ReplySession(t.Context(), bus.Address{Channel: "c", Chat: "g"}); session != "" || err != nil {
		t.Errorf("a reply of nobody known reaches %q, %v", session, err)
	}
}

// Where each person has a session of their own, each agent has one for each of them.
func TestPersonalSessionsAreSeparatePerAgent(t *testing.T) {
	r, _ := newRouter(t, "user", routing.Route{Mention: "ops", Agent: "ops"})
	if to := mustRoute(t, r, groupMessage("g", "5", "ops hello")); to.Session != "ops:c:g::5" || strings.Join(to.OtherSessions, " ") != "main:c:g::5" {
		t.Errorf("routed %+v", to)
	}
	r.MaySplitByPerson = func(context.Context) (bool, error) { return false, nil }
	if _, err := r.Route(t.Context(), groupMessage("g", "5", "ops hello")); !errors.Is(err, gateway.ErrNotNow) {
		t.Errorf("before all know such sessions: %v", err)
	}
	c, book := newRouter(t, "channel", routing.Route{User: "5", Agent: "ops"})
	in := groupMessage("g", "5", "hello")
	in.At.Thread = "8"
	if to := mustRoute(t, c, in); to.Session != "ops:c:g" {
		t.Errorf("one session for a chat: %+v", to)
	}
	requireNoError(t, book.RecordChat(t.Context(), channels.Chat{Address: bus.Address{Channel: "c", Chat: "5"}, Session: "ops:c:5", Person: "c:5", Seen: time.Now()}))
	for chat, want := range map[string]string{"5": "ops:c:5", "g": ""} {
		if session, err := c.ReplySession(t.Context(), bus.Address{Channel: "c", Chat: chat}); session != want || err != nil {
			t.Errorf("a reply in %s reaches %q, %v; want %q", chat, session, err, want)
		}
	}
}

// That the book cannot be read does not mean that nobody listens.
func TestReplySessionReturnsTheBooksError(t *testing.T) {
	at := bus.Address{Channel: "c", Chat: "g", Thread: "8"}
	for _, route := range []routing.Route{{Mention: "ops", Agent: "ops"}, {User: "5", Agent: "ops"}} {
		r, _ := newRouter(t, "thread", route)
		away, cancel := context.WithCancel(t.Context())
		cancel()
		if session, err := r.ReplySession(away, at); session != "" || err == nil {
			t.Errorf("with %+v a reply reaches %q, %v", route, session, err)
		}
	}
	r, _ := newRouter(t, "thread")
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if session, err := r.ReplySession(away, at); session != "main:c:g:8" || err != nil {
		t.Errorf("where one agent answers all, a reply reaches %q, %v", session, err)
	}
}
