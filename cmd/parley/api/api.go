// Package api is what programs and terminals reach over HTTP: messages, sessions, live events, operation.
//
// It holds no state of its own but open streams: what it is asked for it reads
// from the readers and inspectors that it is handed, and what it is told it hands
// to the outbox or to the agent. The same handler serves the network, where
// everybody needs a token, and the home's socket, where the peer is the owner.
// docs/api.yaml describes it; a test holds the two against each other.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/outbox"
	"parley/sessions"
)

// Config is what an API serves.
type Config struct {
	Outbox   *outbox.Outbox
	Sessions sessions.Reader
	Events   bus.Events
	Mail     Mail
	People   People
	Access   Access
	Forget   Forgetter
	Asks     Asks
	// MCP is the servers whose tools agents use.
	MCP MCP
	// Schedules are what people have the agent do later.
	Schedules Schedules
	Agent     Agent
	Channels  func() []string // that are configured, whoever connects them
	Health    Health
	Metrics   http.Handler
	Audit     Audit
	Usage     Usage
	// Webhooks are those configured now, by name. They check their callers themselves.
	Webhooks func() map[string]http.Handler
	// Receivers are the channels that are told by their platforms' requests what people
	// say, by name. They check their callers themselves.
	Receivers func() map[string]http.Handler
	Timeouts  Timeouts
	Log       *slog.Logger
}

// Mail is what waits and what was given up.
type Mail interface {
	bus.Inspector
	bus.DeadLetters
}

// People is who is admitted, where they talk to the bot, and what they think of it.
type People interface {
	channels.Pairings
	channels.Chats
	channels.Ratings
}

// Agent is the way to the agent that programs talk to.
type Agent struct {
	Name string
	// Say publishes what somebody says in a session; nil where no model is
	// configured. bus.ErrFull and bus.ErrInvalid are told as what they are, any
	// other error as "not durable now".
	Say func(ctx context.Context, session string, in bus.Inbound) error
	// Event returns the session in which what was posted to a webhook is answered; false of
	// an address where none is. Nil is of none.
	Event func(at bus.Address) (session string, ok bool)
}

// Health is how the process stands.
type Health struct {
	Version string
	Role    string
	Started time.Time
	// Ready checks the parts by name; nil is ready.
	Ready func(ctx context.Context) map[string]error
	// Channels tells which of the configured channels are connected.
	Channels func() map[string]bool
	// Trouble is why a channel is not connected, as far as is known.
	Trouble func(channel string) string
	// Tools tells what has become of the calls of tools here; nil is of none.
	Tools func() []ToolCount
}

// Timeouts bounds how long others may take. A zero field means its default.
type Timeouts struct {
	Body  time.Duration // to send a request's body; an eighth more for each megabyte: 15 s
	Write time.Duration // to take what is written: 15 s
	Room  time.Duration // that a large body waits for others to be done with: 5 s
	Quiet time.Duration // without an event before a stream says that it lives: 15 s
}

const defaultTimeout = 15 * time.Second

func (t Timeouts) withDefaults() Timeouts {
	for _, d := range []*time.Duration{&t.Body, &t.Write, &t.Quiet} {
		if *d <= 0 {
			*d = defaultTimeout
		}
	}
	if t.Room <= 0 {
		t.Room = defaultTimeout / 3
	}
	return t
}

// An API answers requests. It is an http.Handler.
type API struct {
	cfg     Config
	mux     *http.ServeMux
	streams *streams
	views   *views
	large   chan struct{} // the large bodies that are held in memory
}

// maxLarge bounds how many large bodies are in memory at once: each takes there
// several times what it weighs.
const maxLarge = 4

// New makes an API.
func New(cfg Config) *API {
	cfg.Timeouts = cfg.Timeouts.withDefaults()
	a := &API{cfg: cfg, mux: http.NewServeMux(), streams: newStreams(), large: make(chan struct{}, maxLarge)}
	a.views = newViews(cfg.Sessions)
	for _, r := range a.routes() {
		a.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) {
			a.guarded(w.(*answer), req, r)
		})
	}
	return a
}

// A route is one thing that may be asked for.
type route struct {
	pattern string
	open    bool                               // needs no token: health, and what checks its callers itself
	may     func(caller) bool                  // nil with open
	serve   func(*answer, *http.Request) error // its error is told to the caller

	kind, result string // what the audit records of it; "" is nothing
}

func (a *API) routes() []route {
	return []route{
		{pattern: "POST /v1/messages", may: caller.speaks, serve: a.postMessage},
		{pattern: "GET /v1/messages/{id}", may: func(c caller) bool { return c.speaks() || c.reads() }, serve: a.getMessage},
		{pattern: "GET /v1/sessions", may: caller.listens, serve: a.listSessions},
		{pattern: "GET /v1/sessions/{key}", may: caller.listens, serve: a.readSession},
		route{pattern: "GET /v1/sessions/{key}/export", may: caller.listens, serve: a.exportSession}.audited(sessions.AuditExport, "read"),
		{pattern: "GET /v1/sessions/{key}/events", may: caller.listens, serve: a.watchSession},
		{pattern: "GET /v1/status", may: caller.reads, serve: a.status},
		{pattern: "GET /v1/dead-letters", may: caller.admin, serve: a.listDead},
		{pattern: "GET /v1/dead-letters/{topic}/{id}", may: caller.admin, serve: a.showDead},
		route{pattern: "DELETE /v1/dead-letters/{topic}/{id}", may: caller.admin, serve: a.dropDead}.audited(sessions.AuditReplay, "dropped"),
		route{pattern: "POST /v1/dead-letters/{topic}/{id}/replay", may: caller.admin, serve: a.replayDead}.audited(sessions.AuditReplay, "replayed"),
		{pattern: "GET /v1/chats", may: caller.admin, serve: a.listChats},
		{pattern: "GET /v1/pairings", may: caller.admin, serve: a.listPairings},
		route{pattern: "POST /v1/pairings", may: caller.admin, serve: a.approvePairing}.audited(sessions.AuditPairing, "admitted"),
		route{pattern: "DELETE /v1/pairings/{person}", may: caller.admin, serve: a.revokePairing}.audited(sessions.AuditPairing, "revoked"),
		route{pattern: "POST /v1/pairings/owner", may: caller.admin, serve: a.offerOwner}.audited(sessions.AuditPairing, "offered"),
		route{pattern: "POST /v1/forget", may: caller.admin, serve: a.forget}.audited(sessions.AuditForget, "erased"),
		{pattern: "GET /v1/asks", may: caller.answers, serve: a.listAsks},
		route{pattern: "POST /v1/asks/{id}", may: caller.answers, serve: a.answerAsk}.audited(sessions.AuditApproval, "answered"),
		{pattern: "GET /v1/schedules", may: caller.admin, serve: a.listSchedules},
		route{pattern: "DELETE /v1/schedules/{id}", may: caller.admin, serve: a.cancelSchedule}.audited(sessions.AuditSchedule, "cancelled"),
		{pattern: "GET /v1/mcp", may: caller.admin, serve: a.mcpServers},
		{pattern: "GET /v1/mcp/{name}/login", may: caller.admin, serve: a.mcpServers},
		route{pattern: "POST /v1/mcp/{name}/login", may: caller.admin, serve: a.mcpServers}.audited(sessions.AuditApproval, "login"),
		{pattern: "GET " + mcpPath + "{name}/callback", open: true, serve: a.mcpVisit},
		{pattern: "GET " + mcpPath + "client.json", open: true, serve: a.mcpVisit},
		{pattern: "POST /v1/mcp/{name}/test", may: caller.admin, serve: a.mcpServers},
		route{pattern: "POST /v1/mcp/{name}/accept", may: caller.admin, serve: a.mcpServers}.audited(sessions.AuditApproval, "accepted"),
		{pattern: "GET /v1/usage", may: caller.reads, serve: a.usage},
		{pattern: "GET /v1/audit", may: caller.admin, serve: a.listAudit},
		{pattern: "GET /metrics", may: caller.measures, serve: a.metrics},
		{pattern: "POST /webhooks/{name}", open: true, serve: a.webhook},
		{pattern: "POST " + channelsPath + "{name}", open: true, serve: a.channel},
		{pattern: "GET " + healthPath, open: true, serve: a.healthy},
		{pattern: "GET " + readyPath, open: true, serve: a.ready},
	}
}

// ServeHTTP answers one request. Host and Origin come first, then the token and
// its scope, then everything else.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ans := &answer{ResponseWriter: w, control: http.NewResponseController(w), began: time.Now()}
	defer a.finish(ans, r)
	a.setDeadlines(ans, r)
	if err := a.checkPlace(r); err != nil {
		ans.refuse(err)
		return
	}
	h, pattern := a.mux.Handler(r)
	if p := r.URL.EscapedPath(); path.Clean(p) != p { // else the mux would answer with a page that redirects
		ans.refuse(nothingHere())
		return
	}
	if pattern == "" {
		ans.refuse(unrouted(h, r))
		return
	}
	ans.route = pattern
	a.mux.ServeHTTP(ans, r)
}

// guarded serves a route to those who may have it.
func (a *API) guarded(w *answer, r *http.Request, to route) {
	if !to.open {
		c, err := a.identify(r)
		if err != nil {
			w.refuse(err)
			return
		}
		w.caller = c
		if !to.may(c) {
			w.refuse(forbidden("this token's scopes do not allow this request"))
			return
		}
	}
	if err := a.recorded(w, r, to); err != nil {
		a.explain(w, r, err)
	}
}

// explain tells an error, and logs it where it is the server's and not the caller's.
func (a *API) explain(w *answer, r *http.Request, err error) {
	e := refusalOf(err)
	if e.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		a.cfg.Log.Error("request failed", slog.String("route", w.route), slog.Any("error", err))
	}
	w.refuse(e)
}

// setDeadlines bounds a request's body and its answer; streams set their own.
func (a *API) setDeadlines(w *answer, r *http.Request) {
	// A writer without deadlines, as tests have, needs none.
	_ = w.control.SetWriteDeadline(w.began.Add(4 * a.cfg.Timeouts.Write))
	if r.ContentLength != 0 {
		a.setReadDeadline(w, r)
	}
}

// setReadDeadline bounds, from now on, how long a request's body may take.
func (a *API) setReadDeadline(w *answer, r *http.Request) {
	megabytes := time.Duration(max(r.ContentLength, 0) >> 20)
	_ = w.control.SetReadDeadline(time.Now().Add(a.cfg.Timeouts.Body + megabytes*a.cfg.Timeouts.Body/8))
}

// finish logs a request, and ends one that panicked.
func (a *API) finish(w *answer, r *http.Request) {
	if w.large {
		<-a.large
	}
	if p := recover(); p != nil {
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		a.cfg.Log.Error("request panicked", slog.String("route", w.route),
			slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
		if w.status != 0 {
			panic(http.ErrAbortHandler) // what was begun cannot be told from what is whole
		}
		w.refuse(&refusal{status: http.StatusInternalServerError, code: "internal", message: "something broke; the server's log says more"})
	}
	level := slog.LevelDebug
	if r.Method != http.MethodGet && r.Method != http.MethodHead && (!w.usual || w.status >= http.StatusBadRequest) {
		level = slog.LevelInfo
	}
	a.cfg.Log.LogAttrs(r.Context(), level, "request", slog.String("route", w.route), slog.String("caller", w.caller.name),
		slog.String("id", bounded(w.id)), slog.Int("status", w.status), slog.String("code", w.code), slog.Int64("bytes_in", max(r.ContentLength, 0)),
		slog.Int64("bytes_out", w.bytes), slog.Duration("took", time.Since(w.began)))
}

// bounded is the beginning of what a caller wrote, as much as a log is told of it.
func bounded(id string) string {
	if len(id) <= sessions.MaxKey {
		return id
	}
	return strings.ToValidUTF8(id[:sessions.MaxKey], "") + "…"
}

const shutdownGrace = 10 * time.Second

// Serve answers what comes in through l until ctx is done; it then ends the
// streams, lets the requests in flight finish, and returns nil. It closes l.
func (a *API) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: a, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(a.cfg.Log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	a.streams.end()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := srv.Shutdown(late)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests took longer than %s to end: %w", shutdownGrace, err), srv.Close())
	}
	if ended := <-ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
