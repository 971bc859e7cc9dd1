// Package api serves the HTTP API that programs and terminals use: messages, sessions, live events, operation.
//
// The API holds no state of its own except open streams and caches: it answers requests from the readers and
// inspectors in its Config, and passes messages to the outbox or to the agent. The same handler serves the network,
// where callers need a token, and the home's socket, where whoever connects is the owner. docs/api.yaml describes the
// API; a test compares it with Routes.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"parley/agent/blocks"
	"parley/bus"
	"parley/bus/fanout"
	"parley/channels/markup"
	"parley/channels/outbox"
	"parley/cmd/parley/api/deadletters"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/api/ongoing"
	"parley/cmd/parley/api/snapshot"
	"parley/sessions"
	"parley/tools/process"
)

// Config holds the parts that an API serves.
type Config struct {
	Outbox   *outbox.Outbox
	Sessions sessions.Reader
	Words    Words    // finds what was said
	Activity Activity // sums up what has happened
	// Redact returns the Redactor that removes secrets from snapshots of sessions and from tasks; if Redact is nil,
	// nothing is removed.
	Redact func() blocks.Redactor
	Events bus.Events
	Mail   Mail
	People PeopleStore
	// Links says which accounts belong to the same human. Callers with the scope own see what belongs to accounts
	// linked with theirs; nil links nobody.
	Links  Links
	Access Access
	Asks   Asks
	// Files returns the files in a session's workspace.
	Files func(session string) (fs.FS, error)
	// Canvas returns a canvas of a session, and the policy that a browser has to apply to it. If scripts is false, the
	// canvas has none.
	Canvas func(ctx context.Context, session, name string, scripts bool) (doc []byte, policy string, err error)
	// Further lists the routes that other packages serve, such as those for MCP servers.
	Further []exchange.Route
	// Schedules holds what people have the agent do later.
	Schedules Schedules
	Jobs      ongoing.Jobs
	// Tasks knows the tasks that agents have handed to sub-agents.
	Tasks     ongoing.Tasks
	Agent     Agent
	Channels  func() []string // the names of the configured channels, even if another process connects them
	Health    Health
	Metrics   http.Handler
	Audit     Audit
	ServerLog *process.Log // what this process logs
	Usage     Usage
	// Webhooks returns the configured webhooks by name. They check their callers themselves.
	Webhooks func() map[string]http.Handler
	// Receivers returns, by name, the channels whose platforms send messages as HTTP requests. They check their
	// callers themselves.
	Receivers func() map[string]http.Handler
	// Recheck makes all APIs of this process end the streams of callers who are no longer allowed to watch; nil means
	// that only this API does so.
	Recheck func()
	// Pages returns the addresses at which browsers reach the web page, the one on this machine first.
	Pages    func() []string
	Timeouts Timeouts
	Log      *slog.Logger
}

// redactor returns the Redactor that removes secrets.
func (c Config) redactor() blocks.Redactor {
	if c.Redact == nil {
		return nothingSecret{}
	}
	return c.Redact()
}

// nothingSecret is a Redactor that removes nothing.
type nothingSecret struct{}

func (nothingSecret) Text(text string) string                  { return text }
func (nothingSecret) JSON(raw json.RawMessage) json.RawMessage { return raw }

// Timeouts limits how long callers may take. A zero field means its default.
type Timeouts struct {
	Body  time.Duration // limit for sending a request's body: 15 s, plus an eighth of that for each megabyte
	Write time.Duration // limit for reading an event, or a piece of a download: 15 s; for any other answer, four times that
	Room  time.Duration // limit for a large body to wait for other large bodies: 5 s
	Quiet time.Duration // how long a stream is quiet before it sends a heartbeat: 15 s; at random up to half as long again
}

const defaultTimeout = 15 * time.Second

// withDefaults replaces zero fields with their defaults.
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
	cfg       Config
	mux       *http.ServeMux
	public    []string // the path prefixes of the public routes
	streams   *streams
	snapshots *snapshot.Cache
	hub       *fanout.Hub
	bodies    *exchange.BodyReader
}

// New returns an API.
func New(cfg Config) *API {
	cfg.Timeouts = cfg.Timeouts.withDefaults()
	a := &API{cfg: cfg, mux: http.NewServeMux(), streams: newStreams(), bodies: exchange.NewBodyReader(cfg.Timeouts.Body, cfg.Timeouts.Room)}
	a.cfg.Tasks.Redact = func(text string) string { return cfg.redactor().Text(text) }
	a.snapshots = snapshot.NewCache(cfg.Sessions, cfg.redactor, encodeSnapshot)
	a.hub = fanout.New(cfg.Events, serverFrame)
	if cfg.Recheck == nil {
		a.cfg.Recheck = a.Recheck
	}
	for _, r := range a.Routes() {
		if r.Public {
			a.public = append(a.public, publicPath(r))
		}
		a.mux.HandleFunc(r.Pattern, func(w http.ResponseWriter, req *http.Request) {
			a.serveGuarded(w.(*exchange.Answer), req, r)
		})
	}
	return a
}

// Routes lists everything that the API serves. To add a request, add a row here and its handler; rows whose
// handlers are in another package are in Config.Further.
func (a *API) Routes() []exchange.Route {
	cfg := a.cfg
	seen := readScopes{cfg.Links, &parents{find: cfg.Tasks.Parent}}
	messages := messages{out: cfg.Outbox, log: cfg.Sessions, agent: cfg.Agent}
	logs := logsHandler{sessions: cfg.Sessions, mail: cfg.Mail, asks: cfg.Asks.Open, book: cfg.People, scopes: seen, write: cfg.Timeouts.Write}
	watch := watchHandler{events: cfg.Events, access: cfg.Access, scopes: seen, snapshots: a.snapshots, streams: a.streams, timeouts: cfg.Timeouts}
	logged, asks := serverLog{watch, cfg.ServerLog}, asksHandler{cfg.Asks, seen}
	people, schedules := peopleHandler{cfg.People, cfg.Channels}, schedulesHandler{cfg.Schedules, messages, seen}
	incoming := incoming{cfg.Webhooks, cfg.Receivers}
	files := sessionFiles{cfg.Files, seen, cfg.Timeouts.Write}
	admin := exchange.Caller.IsAdmin
	health := health{cfg.Health, cfg.Mail, cfg.Metrics}
	entry := signIns{access: cfg.Access, pages: cfg.Pages, recheck: cfg.Recheck}
	return slices.Concat([]exchange.Route{
		{Pattern: "POST /v1/messages", May: exchange.Caller.MaySendSomewhere, Serve: messages.post, Audit: sessions.AuditOperator},
		{Pattern: "GET /v1/messages/{id}", May: func(c exchange.Caller) bool { return c.MaySendSomewhere() || c.MayReadAll() }, Serve: messages.get},
		{Pattern: "GET /v1/sessions", May: exchange.Caller.MayWatch, Serve: logs.list},
		{Pattern: "GET /v1/sessions/{key}", May: exchange.Caller.MayWatch, Serve: logs.read},
		{Pattern: "GET /v1/sessions/{key}/export", May: exchange.Caller.MayWatch, Serve: logs.export, Audit: sessions.AuditExport, Result: "read"},
		{Pattern: "GET /v1/sessions/{key}/files", May: exchange.Caller.MayWatch, Serve: files.list},
		{Pattern: "GET /v1/sessions/{key}/files/{name}", May: exchange.Caller.MayWatch, Serve: files.download, Audit: sessions.AuditExport, Result: "file"},
		{Pattern: "GET /v1/sessions/{key}/canvases/{name}", May: exchange.Caller.MayWatch, Serve: canvases{cfg.Canvas, seen}.show, Audit: sessions.AuditExport, Result: "canvas"},
		{Pattern: "GET /v1/sessions/{key}/events", May: exchange.Caller.MayWatch, Serve: watch.watch},
		{Pattern: "GET /v1/events", May: mayWatchServer, Serve: overview{watch, a.hub}.watch},
		{Pattern: "GET /v1/status", May: exchange.Caller.MayReadAll, Serve: health.status},
		{Pattern: "GET /v1/chats", May: admin, Serve: people.chats},
		{Pattern: "GET /v1/pairings", May: admin, Serve: people.pairings},
		{Pattern: "POST /v1/pairings", May: admin, Serve: people.admit, Audit: sessions.AuditPairing, Result: "admitted"},
		{Pattern: "DELETE /v1/pairings/{person}", May: admin, Serve: people.revoke, Audit: sessions.AuditPairing, Result: "revoked"},
		{Pattern: "POST /v1/pairings/owner", May: admin, Serve: people.offerOwner, Audit: sessions.AuditPairing, Result: "offered"},
		{Pattern: "GET /v1/asks", May: mayReadAsks, Serve: asks.list},
		{Pattern: "POST /v1/asks/{id}", May: mayAnswerAsks, Serve: asks.answer, Audit: sessions.AuditApproval, Result: "answered"},
		{Pattern: "GET /v1/schedules", May: mayReadSchedules, Serve: schedules.list},
		{Pattern: "POST /v1/schedules", May: admin, Serve: schedules.add, Audit: sessions.AuditSchedule, Result: "made"},
		{Pattern: "GET /v1/schedules/{id}", May: mayReadSchedules, Serve: schedules.show},
		{Pattern: "PATCH /v1/schedules/{id}", May: admin, Serve: schedules.change, Audit: sessions.AuditSchedule, Result: "changed"},
		{Pattern: "POST /v1/schedules/{id}/run", May: admin, Serve: schedules.run, Audit: sessions.AuditSchedule, Result: "run"},
		{Pattern: "DELETE /v1/schedules/{id}", May: admin, Serve: schedules.cancel, Audit: sessions.AuditSchedule, Result: "cancelled"},
		{Pattern: "GET /v1/usage", May: exchange.Caller.MayReadAll, Serve: cfg.Usage.show},
		{Pattern: "GET /v1/audit", May: admin, Serve: cfg.Audit.list},
		{Pattern: "GET /v1/logs", May: admin, Serve: logged.list},
		{Pattern: "GET /v1/logs/events", May: admin, Serve: logged.watch},
		{Pattern: "POST /v1/sign-ins", Open: true, Serve: entry.signIn, Audit: sessions.AuditSignIn, Result: "signed in"},
		{Pattern: "POST /v1/sign-ins/codes", May: exchange.Caller.IsAnybody, Serve: entry.offer},
		{Pattern: "GET /v1/sign-ins", May: exchange.Caller.IsAnybody, Serve: entry.list},
		{Pattern: "DELETE /v1/sign-ins/{id}", May: exchange.Caller.IsAnybody, Serve: entry.endSignIn, Audit: sessions.AuditSignIn, Result: "ended"},
		{Pattern: "POST /v1/render", May: exchange.Caller.MayWatch, Serve: renderHandler{markup.New()}.render},
		{Pattern: "GET /v1/me", May: exchange.Caller.IsAnybody, Serve: entry.me},
		{Pattern: "GET /metrics", May: exchange.Caller.MayReadMetrics, Serve: health.serveMetrics},
		{Pattern: "POST /webhooks/{name}", Open: true, Serve: incoming.webhook},
		{Pattern: "POST /channels/{name}", Open: true, Public: true, Serve: incoming.channel},
		{Pattern: "GET " + healthPath, Open: true, Serve: health.alive},
		{Pattern: "GET " + readyPath, Open: true, Serve: health.ready},
	}, ongoing.JobRoutes(cfg.Jobs, seen.check), ongoing.TaskRoutes(cfg.Tasks, seen.check), deadletters.Routes(cfg.Mail),
		searchRoutes(cfg.Words, searchScope{all: cfg.Sessions, check: seen.check, recent: logs.recent}), trendRoutes(cfg.Activity), cfg.Further)
}

// publicPath returns the prefix of the paths that a public route serves.
func publicPath(r exchange.Route) string {
	_, p, _ := strings.Cut(r.Pattern, " ")
	p, _, _ = strings.Cut(p, "{")
	return p[:strings.LastIndexByte(p, '/')+1]
}

// ServeHTTP answers one request. It checks Host and Origin first, then the path, then the token and its scopes, then
// everything else.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ans := exchange.New(w, r, a.bodies, 4*a.cfg.Timeouts.Write)
	defer a.finish(ans, r)
	if err := a.cfg.Access.checkHostAndOrigin(r, a.public); err != nil {
		ans.Refuse(refusalOf(err))
		return
	}
	h, pattern := a.mux.Handler(r)
	if p := r.URL.EscapedPath(); path.Clean(p) != p { // otherwise the mux would answer with a page that redirects
		ans.Refuse(noSuchPath())
		return
	}
	if pattern == "" {
		ans.Refuse(noRouteRefusal(h, r))
		return
	}
	ans.Route = pattern
	a.mux.ServeHTTP(ans, r)
}

// serveGuarded serves a route to callers whose token allows it, and refuses all others.
func (a *API) serveGuarded(w *exchange.Answer, r *http.Request, to exchange.Route) {
	if !to.Open {
		c, err := a.cfg.Access.identify(r)
		if err != nil {
			w.Refuse(refusalOf(err))
			return
		}
		w.Caller = c
		if !to.May(c) {
			w.Refuse(exchange.Forbidden("this token's scopes don't allow this request"))
			return
		}
	}
	err := a.cfg.Audit.serve(w, r, to, a.cfg.Log)
	if err == nil {
		return
	}
	e := refusalOf(err)
	if e.Status >= http.StatusInternalServerError && r.Context().Err() == nil { // an error of the server, not of the caller
		a.cfg.Log.Error("request failed", slog.String("route", w.Route), slog.Any("error", err))
	}
	w.Refuse(e)
}

// finish logs a request, and answers one whose handler panicked.
func (a *API) finish(w *exchange.Answer, r *http.Request) {
	w.Close()
	if p := recover(); p != nil {
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		a.cfg.Log.Error("request panicked", slog.String("route", w.Route),
			slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
		if w.Status() != 0 {
			panic(http.ErrAbortHandler) // the caller could mistake a part of the answer for the whole
		}
		w.Refuse(&exchange.Refusal{Status: http.StatusInternalServerError, Code: "internal", Message: "something broke; the server's log has the details"})
	}
	w.LogTo(a.cfg.Log, r)
}

const shutdownGrace = 10 * time.Second

// Serve answers the requests that come through l until ctx is done. Then it ends the streams, lets the requests in
// flight finish, and returns nil. It returns an error if they take longer than shutdownGrace, or if it can't accept
// connections. It closes l.
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
	a.streams.endAll()
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

// Clear removes what the API remembers of sessions, because somebody's words were erased.
func (a *API) Clear() { a.snapshots.Clear() }

// Recheck ends the streams of callers who are no longer allowed to watch. It is called when tokens, sign-ins or
// linked accounts have changed.
func (a *API) Recheck() { a.streams.recheck() }
