// Package api is what programs and terminals reach over HTTP: messages, sessions, live events, operation.
//
// The API holds no state of its own but open streams: it answers questions from the
// readers and inspectors in its Config, and passes messages to the outbox or to the
// agent. The same handler serves the network, where everybody needs a token, and the
// home's socket, where whoever connects is the owner. docs/api.yaml describes the API; a
// test compares the two.
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

// Config holds the parts that an API serves.
type Config struct {
	Outbox   *outbox.Outbox
	Sessions sessions.Reader
	Events   bus.Events
	Mail     Mail
	People   People
	Access   Access
	Forget   Forgetter
	Asks     Asks
	// MCP serves requests about the MCP servers, whose tools agents use.
	MCP MCP
	// Schedules holds what people have the agent do later.
	Schedules Schedules
	Agent     Agent
	Channels  func() []string // the names of the configured channels, even if another process connects them
	Health    Health
	Metrics   http.Handler
	Audit     Audit
	Usage     Usage
	// Webhooks returns the configured webhooks by name. They check their callers themselves.
	Webhooks func() map[string]http.Handler
	// Receivers returns by name the channels to which platforms send what people say as HTTP
	// requests. They check their callers themselves.
	Receivers func() map[string]http.Handler
	Timeouts  Timeouts
	Log       *slog.Logger
}

// Mail shows the messages that wait and the dead letters.
type Mail interface {
	bus.Inspector
	bus.DeadLetters
}

// People knows who is admitted to the bot, in which chats they talk to it, and how they rate its
// answers.
type People interface {
	channels.Pairings
	channels.Chats
	channels.Ratings
}

// Agent connects the API to the agents that programs talk to.
type Agent struct {
	// Name is the agent that answers requests which name none.
	Name string
	// Models returns all agents by name, and for each whether a model is configured that answers
	// for it.
	Models func() map[string]bool
	// Say publishes what somebody says in a session. Callers of the API are told that a mailbox is full (bus.ErrFull)
	// or that the message is invalid (bus.ErrInvalid); any other error they get as "not durable now".
	Say func(ctx context.Context, session string, in bus.Inbound) error
	// Event returns the session in which the agent answers what was posted to the webhook at this
	// address; false if the address is no webhook's. Event is nil if there are no such webhooks.
	Event func(at bus.Address) (session string, ok bool)
}

// Health describes the process and checks its parts.
type Health struct {
	Version string
	Role    string
	Started time.Time
	// Ready checks each part, such as the database, and returns by its name why it is not ready,
	// or nil if it is.
	Ready func(ctx context.Context) map[string]error
	// Channels reports for each channel whether it is connected.
	Channels func() map[string]bool
	// Trouble returns why a channel is not connected, as far as is known.
	Trouble func(channel string) string
	// Tools returns the counts of tool calls in this process; nil if it calls none.
	Tools func() []ToolCount
}

// Timeouts bounds how long callers may take. A zero field means its default.
type Timeouts struct {
	Body  time.Duration // for sending a request's body: 15 s, and an eighth of that more for each megabyte
	Write time.Duration // for reading what the server writes: 15 s
	Room  time.Duration // for a large body to wait until other large bodies are done: 5 s
	Quiet time.Duration // how long a stream may be without an event before it sends a sign of life: 15 s
}

const defaultTimeout = 15 * time.Second

// withDefaults replaces zero fields by their defaults.
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

// An API answers the requests of programs and terminals. It is an http.Handler.
type API struct {
	cfg         Config
	mux         *http.ServeMux
	streams     *streams
	snapshots   *snapshotCache
	largeBodies chan struct{} // has an element for each large body in memory
}

// maxLargeBodies bounds how many large bodies are in memory at once: each takes several
// times its size there.
const maxLargeBodies = 4

// New makes an API.
func New(cfg Config) *API {
	cfg.Timeouts = cfg.Timeouts.withDefaults()
	a := &API{cfg: cfg, mux: http.NewServeMux(), streams: newStreams(), largeBodies: make(chan struct{}, maxLargeBodies)}
	a.snapshots = newSnapshotCache(cfg.Sessions)
	for _, r := range a.routes() {
		a.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) {
			a.serveGuarded(w.(*response), req, r)
		})
	}
	return a
}

// A route is one request that the API serves.
type route struct {
	pattern string
	open    bool                                 // whether it needs no token: health, and handlers that check their callers themselves
	may     func(caller) bool                    // whether a caller may use it; nil if open
	serve   func(*response, *http.Request) error // its error is reported to the caller

	kind, result string // what the audit records of the request; "" if nothing
}

// routes lists everything that the API serves.
func (a *API) routes() []route {
	return []route{
		{pattern: "POST /v1/messages", may: caller.maySendSomewhere, serve: a.postMessage},
		{pattern: "GET /v1/messages/{id}", may: func(c caller) bool { return c.maySendSomewhere() || c.mayReadAll() }, serve: a.getMessage},
		{pattern: "GET /v1/sessions", may: caller.mayWatch, serve: a.listSessions},
		{pattern: "GET /v1/sessions/{key}", may: caller.mayWatch, serve: a.readSession},
		route{pattern: "GET /v1/sessions/{key}/export", may: caller.mayWatch, serve: a.exportSession}.withAudit(sessions.AuditExport, "read"),
		{pattern: "GET /v1/sessions/{key}/events", may: caller.mayWatch, serve: a.watchSession},
		{pattern: "GET /v1/status", may: caller.mayReadAll, serve: a.status},
		{pattern: "GET /v1/dead-letters", may: caller.isAdmin, serve: a.listDead},
		{pattern: "GET /v1/dead-letters/{topic}/{id}", may: caller.isAdmin, serve: a.showDead},
		route{pattern: "DELETE /v1/dead-letters/{topic}/{id}", may: caller.isAdmin, serve: a.dropDead}.withAudit(sessions.AuditReplay, "dropped"),
		route{pattern: "POST /v1/dead-letters/{topic}/{id}/replay", may: caller.isAdmin, serve: a.replayDead}.withAudit(sessions.AuditReplay, "replayed"),
		{pattern: "GET /v1/chats", may: caller.isAdmin, serve: a.listChats},
		{pattern: "GET /v1/pairings", may: caller.isAdmin, serve: a.listPairings},
		route{pattern: "POST /v1/pairings", may: caller.isAdmin, serve: a.approvePairing}.withAudit(sessions.AuditPairing, "admitted"),
		route{pattern: "DELETE /v1/pairings/{person}", may: caller.isAdmin, serve: a.revokePairing}.withAudit(sessions.AuditPairing, "revoked"),
		route{pattern: "POST /v1/pairings/owner", may: caller.isAdmin, serve: a.offerOwner}.withAudit(sessions.AuditPairing, "offered"),
		route{pattern: "POST /v1/forget", may: caller.isAdmin, serve: a.forget}.withAudit(sessions.AuditForget, "erased"),
		{pattern: "GET /v1/asks", may: caller.mayAnswerAsks, serve: a.listAsks},
		route{pattern: "POST /v1/asks/{id}", may: caller.mayAnswerAsks, serve: a.answerAsk}.withAudit(sessions.AuditApproval, "answered"),
		{pattern: "GET /v1/schedules", may: caller.isAdmin, serve: a.listSchedules},
		route{pattern: "DELETE /v1/schedules/{id}", may: caller.isAdmin, serve: a.cancelSchedule}.withAudit(sessions.AuditSchedule, "cancelled"),
		{pattern: "GET /v1/mcp", may: caller.isAdmin, serve: a.serveMCP},
		{pattern: "GET /v1/mcp/{name}/login", may: caller.isAdmin, serve: a.serveMCP},
		route{pattern: "POST /v1/mcp/{name}/login", may: caller.isAdmin, serve: a.serveMCP}.withAudit(sessions.AuditApproval, "login"),
		{pattern: "GET " + mcpPath + "{name}/callback", open: true, serve: a.serveMCPBrowser},
		{pattern: "GET " + mcpPath + "client.json", open: true, serve: a.serveMCPBrowser},
		{pattern: "POST /v1/mcp/{name}/test", may: caller.isAdmin, serve: a.serveMCP},
		route{pattern: "POST /v1/mcp/{name}/accept", may: caller.isAdmin, serve: a.serveMCP}.withAudit(sessions.AuditApproval, "accepted"),
		{pattern: "GET /v1/usage", may: caller.mayReadAll, serve: a.usage},
		{pattern: "GET /v1/audit", may: caller.isAdmin, serve: a.listAudit},
		{pattern: "GET /metrics", may: caller.mayReadMetrics, serve: a.metrics},
		{pattern: "POST /webhooks/{name}", open: true, serve: a.webhook},
		{pattern: "POST " + channelsPath + "{name}", open: true, serve: a.channel},
		{pattern: "GET " + healthPath, open: true, serve: a.serveHealth},
		{pattern: "GET " + readyPath, open: true, serve: a.serveReadiness},
	}
}

// ServeHTTP answers one request. It checks Host and Origin first, then the token and its
// scope, then everything else.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ans := &response{ResponseWriter: w, control: http.NewResponseController(w), began: time.Now()}
	defer a.finishRequest(ans, r)
	a.setDeadlines(ans, r)
	if err := a.checkHostAndOrigin(r); err != nil {
		ans.refuse(err)
		return
	}
	h, pattern := a.mux.Handler(r)
	if p := r.URL.EscapedPath(); path.Clean(p) != p { // else the mux would answer with a page that redirects
		ans.refuse(noSuchPath())
		return
	}
	if pattern == "" {
		ans.refuse(noRouteRefusal(h, r))
		return
	}
	ans.route = pattern
	a.mux.ServeHTTP(ans, r)
}

// serveGuarded serves a route to callers whose token allows it, and refuses all others.
func (a *API) serveGuarded(w *response, r *http.Request, to route) {
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
	if err := a.serveRecorded(w, r, to); err != nil {
		a.reportError(w, r, err)
	}
}

// reportError answers with an error, and logs it if it is the server's fault and not the
// caller's.
func (a *API) reportError(w *response, r *http.Request, err error) {
	e := refusalOf(err)
	if e.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		a.cfg.Log.Error("request failed", slog.String("route", w.route), slog.Any("error", err))
	}
	w.refuse(e)
}

// setDeadlines bounds the time for a request's body and for its answer; streams set their
// own deadlines.
func (a *API) setDeadlines(w *response, r *http.Request) {
	// A writer without deadlines, as tests have, needs none.
	_ = w.control.SetWriteDeadline(w.began.Add(4 * a.cfg.Timeouts.Write))
	if r.ContentLength != 0 {
		a.setReadDeadline(w, r)
	}
}

// setReadDeadline bounds how long, from now on, a request's body may take.
func (a *API) setReadDeadline(w *response, r *http.Request) {
	megabytes := time.Duration(max(r.ContentLength, 0) >> 20)
	_ = w.control.SetReadDeadline(time.Now().Add(a.cfg.Timeouts.Body + megabytes*a.cfg.Timeouts.Body/8))
}

// finishRequest logs a request, and answers one whose handler panicked.
func (a *API) finishRequest(w *response, r *http.Request) {
	if w.large {
		<-a.largeBodies
	}
	if p := recover(); p != nil {
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		a.cfg.Log.Error("request panicked", slog.String("route", w.route),
			slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
		if w.status != 0 {
			panic(http.ErrAbortHandler) // the caller could take a part of the answer for the whole
		}
		w.refuse(&refusal{status: http.StatusInternalServerError, code: "internal", message: "something broke; the server's log says more"})
	}
	level := slog.LevelDebug
	if r.Method != http.MethodGet && r.Method != http.MethodHead && (!w.isRoutine || w.status >= http.StatusBadRequest) {
		level = slog.LevelInfo
	}
	a.cfg.Log.LogAttrs(r.Context(), level, "request", slog.String("route", w.route), slog.String("caller", w.caller.name),
		slog.String("id", truncateForLog(w.id)), slog.Int("status", w.status), slog.String("code", w.code), slog.Int64("bytes_in", max(r.ContentLength, 0)),
		slog.Int64("bytes_out", w.bytes), slog.Duration("took", time.Since(w.began)))
}

// truncateForLog returns what a caller wrote, cut to the length that a log gets.
func truncateForLog(id string) string {
	if len(id) <= sessions.MaxKey {
		return id
	}
	return strings.ToValidUTF8(id[:sessions.MaxKey], "") + "…"
}

const shutdownGrace = 10 * time.Second

// Serve answers the requests that come through l until ctx is done. Then it ends the
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
