// Package server runs a bot: its channels' gateways, the worker that answers, the
// dispatchers that send, and HTTP; and it stops all of them in order. It is where implementations are put together:
// platforms provides the adapters, home the bus and the store, and this package makes the agents, their tools and
// their models.
//
// part.go says what a part of a server is, and what happens to it in which order; list.go lists all parts.
// server.go opens a server, including one for a single command, from what config.go describes; serve.go runs it,
// reload.go makes the parts follow the settings, and role.go defines the roles of a process. foundation.go is what
// all parts are made from.
//
// parts.go makes the parts. Those of the chat side know people and channels: live_channels.go, with
// conversations.go, turn_admission.go, gateways.go, dispatchers.go, accounts.go and account_refusals.go; owners.go,
// problems.go, costs.go and introductions.go. Those of the agent side know tools: rights.go says what an agent may
// do, CallWorkspaces and CommandPlaces in home where its tools work, guard.go which calls run, tools.go makes the
// tools and agents.go the agents, and worker.go runs the worker through which they answer. Every other service has
// a file with its name. front.go serves programs and terminals.
package server

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"parley/agent/metrics"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/models"
	"parley/cmd/parley/server/platforms"
	"parley/tools/canvas"
	"parley/tools/crash"
	"parley/tools/process"
)

// A Server holds all parts of a running bot, connected with each other: the home, the worker, and the channels.
type Server struct {
	foundation
	parts  []part
	chats  *chatSide
	agents *agentSide
	front  *front
}

// keptLogBytes is how many bytes of its newest log lines a process keeps in memory, for the API.
const keptLogBytes = 1 << 20

// Open opens the home, and makes and loads all parts of the server; nothing runs yet. With the role Reader it makes no
// channels, so that it needs neither a platform nor a platform's token.
func Open(ctx context.Context, c Config) (_ *Server, err error) {
	hidden, err := newSecrets(c.Settings)
	if err != nil {
		return nil, err
	}
	recent := process.NewLog(keptLogBytes)
	c.Log = hidden.hideIn(slog.New(recent.Beside(c.Log.Handler())))
	counts := metrics.New(metrics.Config{Build: c.Build, Log: c.Log})
	early := newStartup(ctx)
	defer func() {
		if err != nil {
			_ = early.Close() // Close returns no error
		}
	}()
	box := findSandbox(c, early, counts.SandboxKill)
	book := platforms.NewDeferredBook()
	opened, err := openLiveChannels(c, book)
	if err != nil {
		return nil, err
	}
	h, err := home.Open(ctx, c.Settings, c.Override, c.Log)
	if err != nil {
		return nil, err
	}
	book.Open(h.Book)
	warnOfOwnRoot(c)
	if c.Role.Works() {
		early.begin(c.Models.LookUpWindows)
	}
	g := foundation{home: h, settings: newSettings(c.Settings), role: c.Role, log: c.Log, recent: recent, metrics: counts, traces: newTraces(c, hidden, counts), version: c.Build.Version, started: time.Now(), canvases: &canvas.Reader{}, point: crash.Points()}
	s := newServer(g, c, hidden, opened, box)
	s.parts = append(s.parts, part{name: "early", is: early})
	for _, p := range having[loader](s.parts) {
		if err := p.Load(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// warnOfOwnRoot warns the operator that this process keeps files in its own home, where other processes of the
// fleet don't see them.
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

// newServer returns the parts of a server with an open home, each from the parts made before it. Commands run in box.
func newServer(on foundation, c Config, hidden *secrets, opened liveChannels, box *commandSandbox) *Server {
	on.words = models.NewMeanings(on.home.Store.Words(), on.settings.Load, hidden.text, on.home.Store.Bill(), on.home.Store.Money(), on.log)
	s := &Server{foundation: on}
	s.chats = newChatSide(on, c, opened)
	s.agents = newAgentSide(on, s.chats, hidden, box)
	s.front = newFront(on, s.chats, s.agents.schedules, hidden)
	s.front.stopJob = s.agents.jobs.AskToStop
	s.front.offer, s.front.atTerminal = c.Offer, c.AtTerminal
	s.parts = s.list(c)
	for _, h := range having[host](s.parts) {
		h.meet(s.parts)
	}
	return s
}

// Close closes the home and everything that Open has opened.
func (s *Server) Close() (err error) {
	s.chats.erasing.clearMemory()
	for _, p := range slices.Backward(having[closer](s.parts)) {
		err = errors.Join(err, p.Close())
	}
	return err
}

// Host opens a server for a single command, and serves the home's socket until the caller calls leave.
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
	if err := s.front.listen(""); err != nil {
		return nil, err
	}
	// The command calls leave itself, even when it is interrupted, so ctx must not stop the server.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- s.run(serving) }()
	return func() error {
		stop()
		return errors.Join(<-done, s.Close())
	}, nil
}
