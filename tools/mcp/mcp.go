// Package mcp gives agents the tools of MCP servers: programs that run in the sandbox, and services on the network.
//
// A program runs once for each session that calls it, in that session's sandbox and workspace, and ends after it
// has been idle for a while; a shared program runs once and sees no workspace. Models are shown the tools as they
// were accepted (package pins), so no server needs to run for a turn to begin. What a server says about its tools,
// for example that one only reads, grants nothing: a call counts as one with an outward effect, unless its program
// has no network, and is repeated only if it is certain that the service has not begun it.
//
// The files, in reading order: mcp.go holds the settings, and what is known about each server; run.go runs the
// servers and gives agents their tools; tool.go calls a tool; content.go converts the server's answer; look.go
// finds out which tools there are, and listing.go reads a server's list; pool.go keeps the connections;
// connection.go is one connection, program.go and web.go are its two kinds of transport; requests.go sends HTTP
// requests, and sending.go records how one call was answered; names.go makes the names by which models know the
// tools, signin.go says who may sign in and hides the tokens, and questions.go answers what servers ask.
package mcp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/tools"
	"parley/tools/mcp/pins"
	"parley/tools/mcp/signin"
	"parley/tools/sandbox"
)

// A Server is a configured MCP server: a program, or a service at a URL.
type Server struct {
	Name    string
	Command []string          // the program, and its arguments
	Env     []string          // NAME=VALUE
	Shared  bool              // one program for all sessions, without a workspace
	Network sandbox.Network   // what the program can reach
	URL     string            // the address of a service
	Headers map[string]string // headers that are sent to a service
	// ClientID and ClientSecret are for services that somebody signs in to: see signin.Server.
	ClientID     string
	ClientSecret string
	// Defaults says that a question that the server asks people during a call is answered with the defaults in the
	// question. Without it, the server is told that it cannot ask.
	Defaults bool
	// Tools are the names of the tools that agents get, in which * matches any text; empty means all.
	Tools   []string
	Timeout time.Duration // of one call; zero means a minute
}

// Web reports whether the server is a service on the network.
func (s Server) Web() bool { return s.URL != "" }

// Config holds what Servers need.
type Config struct {
	Servers []Server
	// Sandbox runs the programs; if it is nil, none are run.
	Sandbox sandbox.Sandbox
	// Place returns where a call's programs run.
	Place func(ctx context.Context, call tools.Call) (sandbox.Place, error)
	// FilesChanged is called when a server's program may have changed files of a call's session.
	FilesChanged func(call tools.Call)
	// SaveFile writes a file into a session's workspace, and returns its path there.
	SaveFile func(ctx context.Context, call tools.Call, name string, content []byte) (path string, err error)
	// PreparePicture prepares a picture of a workspace so that it can be shown to a model. Its error is for
	// the model. If it is nil, no picture is shown.
	PreparePicture func(ctx context.Context, call tools.Call, path string) (tools.Picture, error)
	Pins           *pins.Pins
	// SignIn stores the tokens of services that somebody has signed in to; nil if nobody can sign in to any.
	SignIn *signin.Client
	// SignInNeeded is called when a service wants an owner to sign in, and did not before.
	SignInNeeded func(ctx context.Context, server string)
	// ToolsSetAside is called with the names of tools that are new or have changed, and that agents therefore don't get
	// until an owner accepts them.
	ToolsSetAside func(ctx context.Context, server string, names []string)
	// Shared says that other processes use the same store, so that tools may be accepted and set aside there, too.
	Shared  bool
	Version string // the version of this program, as servers are told
	Log     *slog.Logger
	Limits  Limits
}

// Limits limits programs and connections. A zero field means its default.
type Limits struct {
	Programs       int           // programs at once: 50
	Services       int           // connections to services at once: 1,000
	Idle           time.Duration // how long a connection may be idle before it is closed: ten minutes
	Connect        time.Duration // how long connecting may take: 20 s
	Backoff        time.Duration // the wait after the first failure: a second; it doubles up to a minute for calls, and to five minutes for listings
	FollowInterval time.Duration // how often to check what other processes have accepted, or signed in to: 15 s
	ListInterval   time.Duration // the shortest time between two listings of the tools of a server that keeps saying that they changed: 10 s
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&l.Idle, 10 * time.Minute}, {&l.Connect, 20 * time.Second}, {&l.Backoff, time.Second}, {&l.ListInterval, 10 * time.Second}, {&l.FollowInterval, 15 * time.Second}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if l.Programs <= 0 {
		l.Programs = 50
	}
	if l.Services <= 0 {
		l.Services = 1000
	}
	return l
}

// Servers are all configured MCP servers. They may be used by several goroutines at once.
type Servers struct {
	cfg     Config
	servers []*server
	pool    *pool
}

// A server is a configured server with its current state.
type server struct {
	Server
	firstListingDone chan struct{} // closed when the first attempt to list its tools has ended
	once             sync.Once
	changed          chan struct{} // holds a token when the server has said that its tools changed
	signedIn         chan struct{} // holds a token when somebody has signed in

	mu              sync.Mutex
	usesOldGreeting bool  // it does not answer the newest greeting of the protocol
	attempted       bool  // a connection was attempted
	err             error // of the last attempt
}

// Await waits until the first attempt to list the tools of these servers has ended, or until ctx is done. Without
// names it waits for all servers. It doesn't wait for servers whose tools are already known.
func (s *Servers) Await(ctx context.Context, names ...string) {
	for _, one := range s.servers {
		if s.cfg.Pins.IsKnown(one.Name) || len(names) > 0 && !slices.Contains(names, one.Name) {
			continue
		}
		select {
		case <-one.firstListingDone:
		case <-ctx.Done():
			return
		}
	}
}

// Version returns a number that grows whenever Tools may return different tools.
func (s *Servers) Version() int64 { return s.cfg.Pins.Version() }

// A State says whether a server can be reached, and which of its tools agents are offered.
type State struct {
	Name       string
	Tools      []pins.Tool // tools that agents are offered
	Unaccepted []pins.Tool // tools that wait for an owner to accept them
	Reachable  bool        // the last attempt to reach it succeeded
	Err        error       // why the last attempt failed; also nil before the first
}

// States returns the states of all servers.
func (s *Servers) States() []State {
	var all []State
	for _, one := range s.servers {
		up, err := one.lastOutcome()
		all = append(all, State{Name: one.Name, Tools: s.cfg.Pins.OfferedTools(one.Name), Unaccepted: s.cfg.Pins.SetAside(one.Name), Reachable: up, Err: err})
	}
	return all
}

// lastOutcome reports whether the last attempt to reach the server succeeded, and returns its
// error. Before the first attempt it returns false and nil.
func (s *server) lastOutcome() (up bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempted && s.err == nil, s.err
}

// errClosing says that the process is shutting down.
var errClosing = errors.New("the server is shutting down")

// ErrNoServer says that no server has the given name.
var ErrNoServer = errors.New("no such server is configured")

// requestLook asks watchTools to list the server's tools again.
func (s *server) requestLook() {
	select {
	case s.changed <- struct{}{}:
	default: // a signal is already pending
	}
}
