// Package socket keeps a connection to Discord's gateway open and passes on its events in order.
//
// It implements the gateway's protocol itself, on top of gorilla/websocket. discordgo's own connection closes with
// code 1000, which ends the session that it wants to resume; it waits forever for a server that never says hello;
// and it keeps trying with a token that was refused.
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

// An Event is something that happened on Discord.
type Event struct {
	Type string // such as MESSAGE_CREATE
	Data json.RawMessage
}

// The events with which a connection begins.
const (
	Ready = "READY" // a new session: the events before it were missed
	// The session continues: the events since the interruption were delivered before this one.
	Resumed = "RESUMED"
)

// A GatewayInfo says where the gateway is and how many sessions a bot may begin.
type GatewayInfo struct {
	URL            string
	SessionsLeft   int           // sessions that may still be begun
	ResetAfter     time.Duration // the time until SessionsLeft is full again
	MaxConcurrency int           // sessions that may be begun within five seconds
}

// Config says how a Socket is opened and who receives its events.
type Config struct {
	Token   string
	Intents int
	// AllowUnencrypted permits a gateway with a ws:// address.
	AllowUnencrypted bool
	// FindGateway asks Discord for the gateway's address. Its errors are *channels.SendError.
	FindGateway func(context.Context) (GatewayInfo, error)
	// Handle is called for each event, one after another, in order. It must not block: nothing is read while it
	// runs.
	Handle func(context.Context, Event)
	// ReportReachable is called with nil when the gateway was reached, and with the error when it wasn't.
	ReportReachable func(error)
	// HelloTimeout is how long the gateway may take to say hello.
	HelloTimeout time.Duration
	Log          *slog.Logger
}

const (
	// maxReconnectWait is the longest wait between attempts to connect. It is short enough that people are heard
	// soon after an outage.
	maxReconnectWait = 5 * time.Second
	// stableAfter is how long a connection must have lasted for the waits between attempts to start small again.
	stableAfter = 10 * time.Second
	// sessionInterval is the period in which Discord allows GatewayInfo.MaxConcurrency sessions to be begun.
	sessionInterval = 5 * time.Second
)

// A Socket is the connection of one bot to the gateway.
type Socket struct {
	Config
	session        session
	nextSessionAt  time.Time      // when the next session may be begun
	maxConcurrency int            // sessions that may be begun in sessionInterval
	wait           backoff.Series // grows between attempts to connect
	outageLogged   bool           // whether the current outage was logged
}

// A session is what the gateway needs to resume the stream of events where a connection was lost.
type session struct {
	id  string
	url string // the address at which the session is resumed
	seq int64  // the number of the last event
}

// New makes a Socket. It opens no connection yet.
func New(c Config) *Socket { return &Socket{Config: c, maxConcurrency: 1} }

// Run keeps a connection open until ctx is done, then returns nil. It fails only with a *channels.SendError whose
// fault is Stop: Discord refuses the account, or what it asks for.
func (s *Socket) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		err := s.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Stop {
			s.ReportReachable(err)
			return err
		}
		if time.Since(began) >= stableAfter {
			s.wait.Reset()
		}
		if !s.pauseBeforeReconnect(ctx, err) {
			break
		}
	}
	return nil
}

// pauseBeforeReconnect logs and reports why the last connection ended, and waits before the next one, at least for
// as long as the error asks. It returns false if ctx ended first.
func (s *Socket) pauseBeforeReconnect(ctx context.Context, err error) bool {
	wait, atLeast := s.wait.Next(maxReconnectWait), time.Duration(0)
	refusal, ok := errors.AsType[*channels.SendError](err)
	if ok {
		s.ReportReachable(err)
		atLeast = refusal.RetryAfter
		if !s.outageLogged {
			s.outageLogged = true
			s.Log.LogAttrs(ctx, slog.LevelWarn, "Discord cannot be reached; trying on", slog.Any("error", err))
		}
	} else {
		s.Log.LogAttrs(ctx, slog.LevelDebug, "the connection to Discord has ended and is opened again", slog.Any("error", err))
	}
	return backoff.Sleep(ctx, max(wait, atLeast))
}

// connect opens a connection and serves it until it ends, and returns why it ended. It fails with a
// *channels.SendError if no connection could be opened, and with ctx's error if ctx ended before that.
func (s *Socket) connect(ctx context.Context) error {
	address := s.session.url
	if address == "" {
		entry, err := s.findGateway(ctx)
		if err != nil {
			return err
		}
		address = entry.URL
	}
	if err := s.checkAddress(address); err != nil {
		return err
	}
	if s.session.id == "" && !s.awaitSessionStart(ctx) {
		return ctx.Err()
	}
	c, err := dial(ctx, address)
	if err != nil {
		s.session.url = "" // other gateway servers know the session too
		return err
	}
	return c.serve(ctx, s)
}

// findGateway asks Discord for the gateway's address. It fails with a *channels.SendError, including when a session
// must be begun and no more may be begun for now.
func (s *Socket) findGateway(ctx context.Context) (GatewayInfo, error) {
	entry, err := s.FindGateway(ctx)
	if err != nil {
		return entry, err
	}
	s.maxConcurrency = max(entry.MaxConcurrency, 1)
	if s.session.id == "" && entry.SessionsLeft <= 0 {
		return entry, &channels.SendError{
			Fault: channels.Retry, RateLimited: true, RetryAfter: max(entry.ResetAfter, time.Second), Code: "no_sessions_left",
			Err: errors.New("no more sessions may be begun for now"),
		}
	}
	return entry, nil
}

// awaitSessionStart waits until another session may be begun. It returns false if ctx ended first.
func (s *Socket) awaitSessionStart(ctx context.Context) bool {
	if wait := time.Until(s.nextSessionAt); wait > 0 && !backoff.Sleep(ctx, wait) {
		return false
	}
	s.nextSessionAt = time.Now().Add(sessionInterval / time.Duration(s.maxConcurrency))
	return true
}

// checkAddress returns an error if the bot's token may not be sent to the gateway's address, because the address is
// malformed or not encrypted.
func (s *Socket) checkAddress(address string) error {
	u, err := url.Parse(address)
	if err == nil && u.Host != "" && (u.Scheme == "wss" || u.Scheme == "ws" && s.AllowUnencrypted) {
		return nil
	}
	return &channels.SendError{
		Fault: channels.Retry, Code: "bad_gateway_address",
		Err: errors.New("the server gave a gateway address that a token must not be sent to: it has to be wss://HOST"),
	}
}

// withVersion returns the gateway's address with the version and the encoding of the protocol added.
func withVersion(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // dial will report the malformed address
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	q := u.Query()
	q.Set("v", protocolVersion)
	q.Set("encoding", "json")
	u.RawQuery = q.Encode()
	return u.String()
}

// storeSession remembers the session that the event Ready describes.
func (s *Socket) storeSession(data json.RawMessage) error {
	var ready struct {
		Session string `json:"session_id"`
		URL     string `json:"resume_gateway_url"`
	}
	if err := json.Unmarshal(data, &ready); err != nil || ready.Session == "" {
		return errors.New("the beginning of a session cannot be read")
	}
	s.session.id = ready.Session
	if ready.URL != "" && s.checkAddress(ready.URL) == nil {
		s.session.url = ready.URL
	}
	return nil
}

// reportReached records that events are arriving again, and logs the end of an outage.
func (s *Socket) reportReached(ctx context.Context) {
	s.ReportReachable(nil)
	if s.outageLogged {
		s.outageLogged = false
		s.Log.LogAttrs(ctx, slog.LevelInfo, "Discord is reached again")
	}
}

// forgetSession makes the next connection begin a new session. Discord requires a wait of one to five seconds for
// that; the wait is shorter if several sessions may be begun at once.
func (s *Socket) forgetSession() {
	s.session = session{}
	s.nextSessionAt = time.Now().Add((time.Second + rand.N(4*time.Second)) / time.Duration(s.maxConcurrency))
}
