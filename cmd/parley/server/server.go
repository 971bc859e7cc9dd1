// Package server runs a bot: its channels' gateways, the worker that answers, the
// dispatchers that send, HTTP, and the stop of all of them in their order. It is
// where implementations are put together: platforms has the adapters, home the bus
// and the store, and this package makes the agents, their tools and their model.
//
// server.go opens and closes a server, also one for a single command; serve.go runs
// and reloads it, and role.go defines the roles of a process. channels.go makes channels
// from the settings and runs them, streamonly.go makes those that have no platform, and
// owners.go offers a bot to its owner and notifies owners. agents.go makes agents, tools.go
// their tools, guard.go applies the rules for tool calls, approvals.go configures asks,
// schedules, jobs and what is handed to sub-agents, audit.go records in the audit, outgoing.go sends files, and messages.go sends
// what the message tool is asked to send. http.go serves programs and terminals;
// readiness.go checks whether the parts work.
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
	"parley/agent/prompt"
	"parley/agent/warm"
	"parley/channels/asks"
	"parley/cmd/parley/attachments"
	"parley/cmd/parley/audit"
	"parley/cmd/parley/billing"
	"parley/cmd/parley/clock"
	"parley/cmd/parley/config"
	"parley/cmd/parley/crash"
	"parley/cmd/parley/erase"
	"parley/cmd/parley/events"
	"parley/cmd/parley/handover"
	"parley/cmd/parley/heartbeat"
	"parley/cmd/parley/home"
	"parley/cmd/parley/jobs"
	"parley/cmd/parley/mcpservers"
	"parley/cmd/parley/metrics"
	"parley/cmd/parley/models"
	"parley/cmd/parley/owndata"
	"parley/cmd/parley/platforms"
	"parley/cmd/parley/recall"
	"parley/cmd/parley/skillfolders"
	"parley/cmd/parley/undo"
	"parley/cmd/parley/walls"
	"parley/tools"
	"parley/tools/guard"
	"parley/tools/knowledge"
	"parley/tools/redact"
	"parley/tools/sandbox"
)

// A Config holds what Open needs to make a server.
type Config struct {
	Settings *config.Config
	Models   models.Lists // empty if nobody answers
	Role     Role
	// Override names a directory that one session uses as its workspace instead of a folder of
	// its own.
	Override home.WorkspaceOverride
	// Commands lets agents run commands where a sandbox works. The program must have called
	// sandbox.Main at its start, because the sandbox runs the same program as supervisor.
	Commands bool
	Build    metrics.Build // of this program
	Log      *slog.Logger
}

// A Server holds all parts of a running bot, connected with each other: the home, the worker, and
// the channels.
type Server struct {
	home      *home.Home
	log       *slog.Logger
	settings  atomic.Pointer[config.Config] // replaced by SIGHUP
	models    map[string]llm.Model          // by agent; empty if nobody answers
	lists     models.Lists                  // what these consist of
	tools     func() (*tools.Set, error)    // waits until it is known whether a sandbox works
	files     *attachments.Keeper
	guard     atomic.Pointer[callGuard]        // replaced with settings
	secrets   *atomic.Pointer[redact.Redactor] // likewise, for the log; nil if the log is not redacted
	channels  []*endpoint
	metrics   *metrics.Metrics
	asks      *asks.Service
	clock     *clock.Clock
	heartbeat *heartbeat.Service
	jobs      *jobs.Runner
	handover  *handover.Service
	warm      *warm.Journals // what the worker keeps in memory of sessions
	memories  *recall.Memories
	history   *undo.History
	mcp       *mcpservers.Servers
	skills    *skillfolders.Skills
	ownData   *owndata.Commands
	rewriter  *erase.Rewriter
	billing   *billing.UsageReporter
	events    *events.Channel
	// knowledge is the operator's folder that agents read; nil where none is configured.
	knowledge *knowledge.Base
	role      Role
	version   string
	started   time.Time
	endBeside func()       // ends what Open began beside the opening: the search for a sandbox, first requests to platforms and models
	point     func(string) // called where a test may kill the process; nil but in chaos builds
	trail     *audit.Trail
	// auditFile is nil where none is configured.
	auditFile *audit.File

	readiness     readiness
	includesFleet atomic.Bool // whether this process's metrics include what the fleet shares

	prompts    prompt.Cache
	lastLimits atomic.Pointer[limitsOf]
	abilities  platforms.KnownAbilities
	grants     sync.Map // sets of tools that were made already, by capabilities
}

// Open opens the home, and makes the channels that are configured. With the role Reader it makes
// none, so that it needs neither a platform nor a token for one.
func Open(ctx context.Context, c Config) (_ *Server, err error) {
	known, err := redact.New(c.Settings.Secrets(), c.Settings.Tools.Redact)
	if err != nil {
		return nil, fmt.Errorf("tools.redact: %w", err)
	}
	secrets := &atomic.Pointer[redact.Redactor]{}
	secrets.Store(known) // setGuard adds what the home holds
	c.Log = slog.New(redact.Handler(c.Log.Handler(), secrets.Load))
	counting := &atomic.Pointer[metrics.Metrics]{} // nil while the sandbox is only being tried
	trying, giveUp := context.WithCancel(ctx)
	walled := probeSandbox(trying, c, func(reason string) {
		if m := counting.Load(); m != nil {
			m.SandboxKill(reason)
		}
	})
	var beside sync.WaitGroup
	leave := func() {
		giveUp()
		_, _ = walled() // its result matters only to earlier callers
		beside.Wait()
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	book := platforms.NewDeferredBook()
	opened, err := openEndpoints(c, book)
	if err != nil {
		return nil, err
	}
	h, err := home.OpenAnd(ctx, c.Settings, c.Override, c.Log, func() { prefetch(trying, c.Role, opened, &beside) })
	if err != nil {
		return nil, err
	}
	book.Open(h.Book)
	warnOfOwnRoot(c)
	s := newServer(h, c, opened, walled)
	h.PlanReplies(s.planReply)
	s.endBeside = leave
	if c.Role.Works() {
		beside.Go(func() { c.Models.LookUpWindows(trying) })
	}
	counting.Store(s.metrics)
	s.secrets = secrets
	if err := s.loadAgentInputs(ctx, c, walled); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return s, nil
}

// loadAgentInputs reads what agents work with: prices, the knowledge folder, skills, MCP
// servers and the rules for tools. It also opens the audit file.
func (s *Server) loadAgentInputs(ctx context.Context, c Config, walled func() (sandbox.Sandbox, error)) error {
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

// warnOfOwnRoot warns the operator that this process keeps files in its own home, where
// other processes of the fleet do not see them.
func warnOfOwnRoot(c Config) {
	if c.Role == Gateway && home.OwnRoot(c.Settings) {
		c.Log.Warn("the files that agents send are looked for in this process's own home, where workers do not put them: set workspace.root to the directory that all share",
			slog.String("root", c.Settings.Workspace.Root))
	}
	for _, folder := range c.Settings.Folders() {
		if c.Role.Serves() && c.Role.Works() && home.IsOwnFolder(c.Settings, folder.Dir) {
			c.Log.Warn("the conversations' files are in this process's own home, where other workers do not see them: name a directory that all share",
				slog.String("setting", folder.Key), slog.String("root", folder.Dir))
		}
	}
}

// probeSandbox begins to find out in which sandbox commands can run on this machine, which takes
// longer than everything else at the start. It returns a function that waits for the result; the
// sandbox is nil if no commands are run.
func probeSandbox(ctx context.Context, c Config, killed func(reason string)) func() (sandbox.Sandbox, error) {
	if !c.Commands || !c.Role.Works() && c.Role != Reader {
		return func() (sandbox.Sandbox, error) { return nil, nil }
	}
	found := sync.OnceValues(func() (sandbox.Sandbox, error) { return walls.Open(ctx, c.Settings, c.Log, killed) })
	if c.Role == Reader {
		return found // the command may need no sandbox, so nothing begins yet
	}
	go func() { _, _ = found() }() // later callers get the result
	return found
}

// newServer connects the parts of a server over an open home. It adds the channels without a
// platform to the opened ones; walled returns the sandbox for commands.
func newServer(h *home.Home, c Config, opened []*endpoint, walled func() (sandbox.Sandbox, error)) *Server {
	s := &Server{
		home: h, log: c.Log, role: c.Role, version: c.Build.Version, started: time.Now(), point: crash.Points(), warm: warm.New(warm.Bounds{}),
	}
	s.settings.Store(c.Settings)
	s.events = &events.Channel{Bus: h.Bus, Events: h.Bus, Book: h.Book, Webhooks: s.eventWebhook}
	s.heartbeat = s.newHeartbeat()
	s.channels = append(opened, s.streamOnlyEndpoints()...)
	s.files = s.newFiles()
	s.jobs = s.newJobs(walls.DeferredSandbox(walled))
	s.history = s.newHistory()
	s.memories = recall.New(h.Book)
	h.Store.AskBeside(s.memories.Question)
	s.trail = audit.New(audit.Config{Store: h.Store, Keep: auditRetention(c.Settings), Log: c.Log})
	s.guard.Store(&callGuard{Guard: &guard.Guard{}, redact: &redact.Redactor{}}) // until Open reads the rules
	s.metrics = metrics.New(metrics.Config{
		Build: c.Build, Fleet: metrics.Fleet{Holder: s.includesFleet.Load, Bus: h.Bus, Book: h.Book},
		Channels: s.connectionStates, Servers: s.serversUp, Jobs: func() int { return s.jobs.Running() }, Dropped: h.Bus.Dropped, LostWrites: h.LostWrites, Log: c.Log,
	})
	s.lists = c.Models
	s.models = models.Chains(c.Models, h.Book, s.metrics, c.Log)
	s.handover = s.newHandover()
	s.billing = s.newBilling()
	s.asks = s.newAsks()
	s.clock = s.newClock()
	s.mcp = s.newMCP(c.Settings, deferredSandbox(walled))
	s.skills = s.newSkills(walled)
	s.tools = sync.OnceValues(func() (*tools.Set, error) {
		made := s.newTools(walls.DeferredSandbox(walled)) // while the sandbox is being tried out
		box, err := walled()
		if box == nil {
			made = s.newTools(nil)
		}
		return made, err
	})
	s.rewriter = erase.NewRewriter(h.Store, c.Settings.Store.URL != "", c.Log)
	s.ownData = owndata.New(owndata.Config{
		Notes: h.Book, Ratings: h.Book, Memories: h.Book, Schedules: h.Store.Schedules(), Bus: h.Bus, Store: h.Store, Eraser: func() owndata.Eraser { return s.eraser() }, Prefix: s.commandPrefix, Log: c.Log,
	})
	return s
}

// Close closes the home and all that Open has opened.
func (s *Server) Close() error {
	s.endBeside()
	s.warm.Clear()
	err := errors.Join(s.trail.Close(), s.home.Close())
	if s.knowledge != nil {
		err = errors.Join(err, s.knowledge.Close())
	}
	return err
}

// openKnowledge opens the operator's folder that agents read, if one is configured.
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

// Host opens a server for a single command, and serves the home's socket until the caller
// calls leave.
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
	// The command calls leave itself, also when it is interrupted, so ctx must not stop the server.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() {
		done <- s.runStages(running, s.stages(func(ctx context.Context) error { return f.serve(ctx, socket, nil) })...)
	}()
	return func() error {
		stop()
		return errors.Join(<-done, s.Close())
	}, nil
}
