// Package socket keeps a connection to Discord's gateway open and hands on, in order, what it brings.
//
// It speaks the gateway's protocol itself, over gorilla/websocket: discordgo's own
// connection closes with code 1000, which ends the session that it wants to resume,
// waits for good for a server that never says hello, and asks again and again with a
// token that was refused.
//
// The files, in reading order: socket.go keeps one connection after another open;
// connection.go is one of them; refusals.go says what Discord means when it closes one.
package socket

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"parley/channels"
	"parley/channels/backoff"
)

// An Event is something that has happened on Discord.
type Event struct {
	Type string // such as MESSAGE_CREATE
	Data json.RawMessage
}

// The events by which a connection begins.
const (
	Ready   = "READY"   // a new session: what happened before was missed
	Resumed = "RESUMED" // the session goes on: what happened meanwhile was brought before this
)

// An Entry is where the gateway is, and how often a session may be begun there.
type Entry struct {
	URL        string
	Left       int           // sessions that may be begun
	ResetAfter time.Duration // until there are more of them
	AtOnce     int           // sessions that may be begun in five seconds
}

// Config says how a Socket is to be opened, and whom it serves.
type Config struct {
	Token   string
	Intents int
	// Plain allows a gateway whose connection is not encrypted.
	Plain bool
	// Enter asks where the gateway is. Its errors are *channels.SendError.
	Enter func(context.Context) (Entry, error)
	// Handle is called for each event, one after the other, in their order. It must
	// not wait for anything: while it runs nothing is read.
	Handle func(context.Context, Event)
	// Note is told whether the gateway was reached.
	Note func(error)
	// Hello is how long the gateway may take to greet.
	Hello time.Duration
	Log   *slog.Logger
}

const (
	mostWait = 5 * time.Second // between attempts, so that people are heard soon after an outage
	// goodLife is how long a connection must have lasted for the next to be opened
	// without a wait.
	goodLife = 10 * time.Second
	// startEvery is how long it takes until as many sessions may be begun as Discord
	// allows at once.
	startEvery = 5 * time.Second
)

// A Socket is the connection of one bot to the gateway.
type Socket struct {
	Config
	session session
	next    time.Time // when the next session may be asked for
	atOnce  int       // sessions that may be begun in startEvery
	wait    backoff.Series
	down    bool // an outage was logged
}

// A session is what Discord needs to go on where a connection broke off.
type session struct {
	id  string
	url string // where it goes on
	seq int64  // of the last event
}

// New makes a Socket. It talks to nobody yet.
func New(c Config) *Socket { return &Socket{Config: c, atOnce: 1} }

// Run keeps a connection open until ctx is done, and then returns nil. Its error is a
// *channels.SendError of kind Stop: Discord refuses the account, or what it asks for.
func (s *Socket) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		err := s.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Stop {
			s.Note(err)
			return err
		}
		if time.Since(began) >= goodLife {
			s.wait.Reset()
		}
		if !s.pause(ctx, err) {
			break
		}
	}
	return nil
}

// pause waits before the next connection, at least for as long as the error asks.
func (s *Socket) pause(ctx context.Context, err error) bool {
	wait, atLeast := s.wait.Next(mostWait), time.Duration(0)
	refusal, ok := errors.AsType[*channels.SendError](err)
	if ok {
		s.Note(err)
		atLeast = refusal.RetryAfter
		if !s.down {
			s.down = true
			s.Log.LogAttrs(ctx, slog.LevelWarn, "Discord cannot be reached; trying on", slog.Any("error", err))
		}
	} else {
		s.Log.LogAttrs(ctx, slog.LevelDebug, "the connection to Discord has ended and is opened again", slog.Any("error", err))
	}
	return backoff.Sleep(ctx, max(wait, atLeast))
}

// connect opens a connection and serves it until it ends. Its error is a
// *channels.SendError where there was none.
func (s *Socket) connect(ctx context.Context) error {
	address := s.session.url
	if address == "" {
		entry, err := s.enter(ctx)
		if err != nil {
			return err
		}
		address = entry.URL
	}
	if err := s.check(address); err != nil {
		return err
	}
	if s.session.id == "" && !s.awaitTurn(ctx) {
		return ctx.Err()
	}
	c, err := dial(ctx, address)
	if err != nil {
		s.session.url = "" // other servers know the session as well
		return err
	}
	return c.serve(ctx, s)
}

// enter asks where the gateway is. Its error is a *channels.SendError.
func (s *Socket) enter(ctx context.Context) (Entry, error) {
	entry, err := s.Enter(ctx)
	if err != nil {
		return entry, err
	}
	s.atOnce = max(entry.AtOnce, 1)
	if s.session.id == "" && entry.Left <= 0 {
		return entry, &channels.SendError{
			Fault: channels.Retry, Limited: true, RetryAfter: max(entry.ResetAfter, time.Second), Code: "no_sessions_left",
			Err: errors.New("no more sessions may be begun for now"),
		}
	}
	return entry, nil
}

// awaitTurn waits until another session may be begun.
func (s *Socket) awaitTurn(ctx context.Context) bool {
	if wait := time.Until(s.next); wait > 0 && !backoff.Sleep(ctx, wait) {
		return false
	}
	s.next = time.Now().Add(startEvery / time.Duration(s.atOnce))
	return true
}

// check says what is wrong with the gateway's address. The token goes there.
func (s *Socket) check(address string) error {
	u, err := url.Parse(address)
	if err == nil && u.Host != "" && (u.Scheme == "wss" || u.Scheme == "ws" && s.Plain) {
		return nil
	}
	return &channels.SendError{
		Fault: channels.Retry, Code: "bad_gateway_address",
		Err: errors.New("the gateway's address that the server gives is none to which a token may go: want wss://HOST"),
	}
}

// withVersion is the gateway's address with the version of its protocol.
func withVersion(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // dial says so
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	q := u.Query()
	q.Set("v", version)
	q.Set("encoding", "json")
	u.RawQuery = q.Encode()
	return u.String()
}

// begun takes note of a session that Discord has begun.
func (s *Socket) begun(data json.RawMessage) error {
	var ready struct {
		Session string `json:"session_id"`
		URL     string `json:"resume_gateway_url"`
	}
	if err := json.Unmarshal(data, &ready); err != nil || ready.Session == "" {
		return errors.New("the beginning of a session cannot be read")
	}
	s.session.id = ready.Session
	if ready.URL != "" && s.check(ready.URL) == nil {
		s.session.url = ready.URL
	}
	return nil
}

// reached takes note of a connection over which events come.
func (s *Socket) reached(ctx context.Context) {
	s.Note(nil)
	if s.down {
		s.down = false
		s.Log.LogAttrs(ctx, slog.LevelInfo, "Discord is reached again")
	}
}

// forget has the next connection begin a new session, after one to five seconds, as
// Discord asks for where it has ended one.
func (s *Socket) forget() {
	s.session = session{}
	s.next = time.Now().Add((time.Second + rand.N(4*time.Second)) / time.Duration(s.atOnce))
}
