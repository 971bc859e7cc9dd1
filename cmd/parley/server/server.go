// Package server runs a bot: its channels' gateways, the worker that answers, the
// dispatchers that send, HTTP, and the stop of all of them in their order. It is
// where implementations are put together: platforms has the adapters, home the bus
// and the store, and this package makes the agents, their tools and their model.
//
// server.go opens and closes a server, also that of a single command; serve.go runs
// and reloads it, and role.go says what a process is for. channels.go makes channels
// of settings and runs them, streamonly.go those that have no platform, and owners.go
// offers a bot to its owner. agents.go makes agents, tools.go their tools, with those
// that run in a sandbox, guard.go what decides about calls, approvals.go who is asked and what happens at times,
// audit.go what is written down of them, and messages.go is the message tool's way out.
// http.go is what programs and terminals reach; readiness.go says how the parts are.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent/llm"
	"parley/channels/asks"
	"parley/cmd/parley/attachments"
	"parley/cmd/parley/audit"
	"parley/cmd/parley/billing"
	"parley/cmd/parley/clock"
	"parley/cmd/parley/config"
	"parley/cmd/parley/crash"
	"parley/cmd/parley/events"
	"parley/cmd/parley/heartbeat"
	"parley/cmd/parley/home"
	"parley/cmd/parley/jobs"
	"parley/cmd/parley/mcpservers"
	"parley/cmd/parley/metrics"
	"parley/cmd/parley/models"
	"parley/cmd/parley/owndata"
	"parley/cmd/parley/skillfolders"
	"parley/cmd/parley/undo"
	"parley/cmd/parley/walls"
	"parley/tools"
	"parley/tools/guard"
	"parley/tools/knowledge"
	"parley/tools/redact"
	"parley/tools/sandbox"
)

// A Config is what a server is opened with.
type Config struct {
	Settings *config.Config
	Models   []models.Model // who answers, in the order in which they are asked; none: nobody does
	Role     Role
	// Override is a directory for one session to work in.
	Override home.WorkspaceOverride
	// Commands lets agents run commands, where a sandbox works. The program has called
	// sandbox.Main: it runs itself to supervise them.
	Commands bool
	Build    metrics.Build // of this program
	Log      *slog.Logger
}

// A Server is everything wired together: one home, one worker, and the channels.
type Server struct {
	home     *home.Home
	log      *slog.Logger
	settings atomic.Pointer[config.Config] // replaced by SIGHUP
	model    llm.Model                     // nil: nobody answers
	tools    func() (*tools.Set, error)    // waits until it is known what commands run in
	files    *attachments.Keeper
	guard    atomic.Pointer[guarding]         // replaced with settings
	secrets  *atomic.Pointer[redact.Redactor] // likewise, for the log; nil: the log is as it is
	channels []*endpoint
	metrics  *metrics.Metrics
	desk     *asks.Desk
	clock    *clock.Clock
	heart    *heartbeat.Desk
	jobs     *jobs.Runner
	history  *undo.Desk
	mcp      *mcpservers.Servers
	skills   *skillfolders.Skills
	ownData  *owndata.Desk
	billing  *billing.Desk
	events   *events.Desk
	// knowledge is the operator's folder that agents read; nil where none is configured.
	knowledge *knowledge.Base
	role      Role
	version   string
	started   time.Time
	leave     func()       // ends what Open has begun
	point     func(string) // kill points, in chaos builds alone
	trail     *audit.Trail
	// auditFile is nil where none is configured.
	auditFile *audit.File

	readiness readiness
	tells     atomic.Bool // what the whole fleet shares, in its metrics

	lastPrompt atomic.Pointer[string]
	grants     sync.Map // of tool sets, by capabilities
}

// Open opens the home, and makes the channels that are configured. Who only looks
// needs no platform, and no token of one.
func Open(ctx context.Context, c Config) (_ *Server, err error) {
	known, err := redact.New(c.Settings.Secrets(), c.Settings.Tools.Redact)
	if err != nil {
		return nil, fmt.Errorf("tools.redact: %w", err)
	}
	secrets := &atomic.Pointer[redact.Redactor]{}
	secrets.Store(known) // setGuard adds what the home holds
	c.Log = slog.New(redact.Handler(c.Log.Handler(), secrets.Load))
	counting := &atomic.Pointer[metrics.Metrics]{} // nil while the walls are only tried out
	trying, giveUp := context.WithCancel(ctx)
	walled := findWalls(trying, c, func(reason string) {
		if m := counting.Load(); m != nil {
			m.SandboxKill(reason)
		}
	})
	leave := func() {
		giveUp()
		_, _ = walled() // what it gives was for those who have asked
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	h, err := home.Open(ctx, c.Settings, c.Override, c.Log)
	if err != nil {
		return nil, err
	}
	warnOfOwnRoot(c)
	var opened []*endpoint
	if c.Role != Reader {
		if opened, err = openEndpoints(c.Settings, h.Book, c.Log); err != nil {
			return nil, errors.Join(err, h.Close())
		}
	}
	if !c.Role.Serves() {
		receiveNothing(opened)
	}
	s := newServer(h, c, opened, walled)
	s.leave = leave
	counting.Store(s.metrics)
	s.secrets = secrets
	if err := s.begin(ctx, c, walled); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return s, nil
}

// begin reads what agents work with, and by which rules.
func (s *Server) begin(ctx context.Context, c Config, walled func() (sandbox.Sandbox, error)) error {
	if err := s.openPrices(); err != nil {
		return err
	}
	if err := s.openKnowledge(); err != nil {
		return err
	}
	if err := s.readSkills(c.Settings); err != nil {
		return err
	}
	if err := s.openAuditFile(c); err != nil {
		return err
	}
	if walls.MayBeWrong(c.Settings) {
		if _, err := walled(); err != nil {
			return err
		}
	}
	if err := s.mcp.Load(ctx); err != nil {
		return err
	}
	return s.setGuard(c.Settings)
}

// receiveNothing is for a command, which only sends what its person wants sent: serve
// receives.
func receiveNothing(opened []*endpoint) {
	for _, l := range opened {
		l.receive = false
	}
}

// warnOfOwnRoot tells the operator of files that others of a fleet do not see.
func warnOfOwnRoot(c Config) {
	if c.Role == Gateway && home.OwnRoot(c.Settings) {
		c.Log.Warn("the files that agents send are looked for in this process's own home, where workers do not put them: set workspace.root to the directory that all share",
			slog.String("root", c.Settings.Workspace.Root))
	}
	if c.Role.Serves() && c.Role.Works() && home.OwnRoot(c.Settings) {
		c.Log.Warn("the conversations' files are in this process's own home, where other workers do not see them: set workspace.root to a directory that all share",
			slog.String("root", c.Settings.Workspace.Root))
	}
}

// findWalls begins to find out what commands run in, which takes longer than all else at
// the start. What it returns waits for that, and gives nil where no commands are run.
func findWalls(ctx context.Context, c Config, killed func(reason string)) func() (sandbox.Sandbox, error) {
	if !c.Commands || !c.Role.Works() && c.Role != Reader {
		return func() (sandbox.Sandbox, error) { return nil, nil }
	}
	found := sync.OnceValues(func() (sandbox.Sandbox, error) { return walls.Open(ctx, c.Settings, c.Log, killed) })
	if c.Role == Reader {
		return found // it may run nothing
	}
	go func() { _, _ = found() }() // who asks is given what comes of it
	return found
}

// newServer wires a server over an open home, with those channels and the ones
// that have no platform.
func newServer(h *home.Home, c Config, opened []*endpoint, walled func() (sandbox.Sandbox, error)) *Server {
	s := &Server{
		home: h, log: c.Log, role: c.Role, version: c.Build.Version, started: time.Now(), point: crash.Points(),
	}
	s.settings.Store(c.Settings)
	s.events = &events.Desk{Bus: h.Bus, Events: h.Bus, Book: h.Book, Webhooks: s.eventWebhook}
	s.heart = s.newHeart()
	s.channels = append(opened, s.streamOnlyEndpoints()...)
	s.files = s.newFiles()
	s.jobs = s.newJobs(walls.Later(walled))
	s.history = s.newHistory()
	s.trail = audit.New(audit.Config{Store: h.Store, Keep: keptFor(c.Settings), Log: c.Log})
	s.guard.Store(&guarding{Guard: &guard.Guard{}, redact: &redact.Redactor{}}) // until Open reads the rules
	s.metrics = metrics.New(metrics.Config{
		Build: c.Build, Fleet: metrics.Fleet{Holder: s.tells.Load, Bus: h.Bus, Book: h.Book},
		Channels: s.connected, Servers: s.serversUp, Jobs: func() int { return s.jobs.Running() }, Dropped: h.Bus.Dropped, Log: c.Log,
	})
	s.model = models.Chain(c.Models, h.Book, s.metrics, c.Log)
	s.billing = s.newBilling()
	s.desk = s.newDesk()
	s.clock = s.newClock()
	s.mcp = s.newMCP(c.Settings, laterBox(walled))
	s.skills = s.newSkills(walled)
	s.tools = sync.OnceValues(func() (*tools.Set, error) {
		box, err := walled()
		return s.newTools(box), err
	})
	s.ownData = owndata.New(owndata.Config{
		Notes: h.Book, Ratings: h.Book, Memories: h.Book, Schedules: h.Store.Schedules(), Bus: h.Bus, Store: h.Store, Eraser: func() owndata.Eraser { return s.eraser() }, Prefix: s.commandPrefix, Log: c.Log,
	})
	return s
}

// Close gives the home back.
func (s *Server) Close() error {
	s.leave()
	err := errors.Join(s.trail.Close(), s.home.Close())
	if s.knowledge != nil {
		err = errors.Join(err, s.knowledge.Close())
	}
	return err
}

// openKnowledge opens the operator's folder that agents read, where one is configured.
func (s *Server) openKnowledge() (err error) {
	c := s.settings.Load()
	if c.Knowledge.Dir == "" || !s.role.Works() {
		return nil
	}
	if s.knowledge, err = knowledge.Open(c.Knowledge.Dir); err != nil {
		return &config.SettingError{Where: c.Origin("knowledge.dir"), Key: "knowledge.dir", Remedy: fmt.Sprintf("it cannot be read (%v): make the folder, or name another", err)}
	}
	return nil
}

// Host opens a server for a single command, and serves the home's socket until
// leave is called.
func Host(ctx context.Context, c Config) (leave func() error, err error) {
	s, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	f, err := s.newHTTPAccess()
	if err != nil {
		return nil, err
	}
	socket, _, err := f.listen("")
	if err != nil {
		return nil, err
	}
	// The command leaves by itself, in order, also when it is interrupted.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() {
		done <- s.run(running, s.stages(func(ctx context.Context) error { return f.serve(ctx, socket, nil) })...)
	}()
	return func() error {
		stop()
		return errors.Join(<-done, s.Close())
	}, nil
}
