// Package mcp gives agents the tools of MCP servers: of programs that run in the sandbox, and of services on the network.
//
// A program is run once for each session that calls it, in that session's sandbox and
// workspace, and ends when it was idle for a while; one that is shared is run once and sees
// no workspace. Models are shown the tools as they were accepted (package pins), so nothing
// needs to run for a turn to begin. What a server says of its tools, such as that one only
// reads, grants nothing: each call counts as one with outward effect, and is never repeated.
//
// The files: mcp.go is what agents are given; look.go finds out which tools there are;
// tool.go calls one; content.go is what comes back; pool.go keeps the connections;
// connection.go is one of them, program.go and web.go how it is made; names.go is what
// tools are called here, login.go the tokens of who has signed in, and questions.go what
// servers ask.
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

// A Server is one as it is configured: a program, or a service at a URL.
type Server struct {
	Name    string
	Command []string          // the program, and its arguments
	Env     []string          // NAME=VALUE
	Shared  bool              // one program for all sessions, without a workspace
	Network sandbox.Network   // what the program reaches
	URL     string            // of a service
	Headers map[string]string // that it is sent
	// ClientID and ClientSecret are for services that somebody signs in to: see signin.Server.
	ClientID     string
	ClientSecret string
	// Defaults has what it asks people in mid-call answered with the defaults that it names;
	// else it is told that it cannot ask.
	Defaults bool
	// Tools are the names of those that agents get, with * for any text; empty is all.
	Tools   []string
	Timeout time.Duration // of one call; zero is a minute
}

// Web tells whether a server is a service on the network.
func (s Server) Web() bool { return s.URL != "" }

// Config is what Servers work with.
type Config struct {
	Servers []Server
	// Sandbox is where programs run; nil runs none.
	Sandbox sandbox.Sandbox
	// Place returns where a call's programs run.
	Place func(ctx context.Context, call tools.Call) (sandbox.Place, error)
	// Changed is told that a session's program may have changed its files.
	Changed func(call tools.Call)
	// Keep puts a file into a session's workspace, and returns its path there.
	Keep func(ctx context.Context, call tools.Call, name string, content []byte) (path string, err error)
	// Show makes a picture of a workspace fit to be shown to a model. Its error is for the
	// model. Nil shows none.
	Show func(ctx context.Context, call tools.Call, path string) (tools.Picture, error)
	Pins *pins.Pins
	// SignIn has the tokens of services that want somebody to be signed in; nil has none.
	SignIn *signin.Desk
	// Login is told of a service that wants an owner to sign in.
	Login func(ctx context.Context, server string)
	// Aside is told of tools that were set aside because they are new or have changed.
	Aside func(ctx context.Context, server string, names []string)
	// Shared says that other processes accept and set aside too.
	Shared  bool
	Version string // of this program, which servers are told
	Log     *slog.Logger
	Limits  Limits
}

// Limits bounds programs and connections. A zero field means its default.
type Limits struct {
	Programs int           // at once: 50
	Services int           // connections to services at once: 1,000
	Idle     time.Duration // after which a connection ends: ten minutes
	Connect  time.Duration // that connecting may take: 20 s
	Backoff  time.Duration // after the first failure: a second; it doubles up to a minute
	Follow   time.Duration // after which it is looked what other processes have accepted, or signed in to: 15 s
	Settle   time.Duration // between two looks at the tools of a server that says they changed: 10 s
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&l.Idle, 10 * time.Minute}, {&l.Connect, 20 * time.Second}, {&l.Backoff, time.Second}, {&l.Settle, 10 * time.Second}, {&l.Follow, 15 * time.Second}} {
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

// Servers are all that are configured. They may be used by many at once.
type Servers struct {
	cfg     Config
	servers []*server
	pool    *pool
}

// A server is one with what this process knows of it.
type server struct {
	Server
	looked  chan struct{} // closed once it was tried to find out its tools
	once    sync.Once
	changed chan struct{} // holds a token when it has said that its tools changed
	signed  chan struct{} // holds a token when somebody has signed in

	mu     sync.Mutex
	legacy bool  // it does not answer the protocol's newest greeting
	tried  bool  // connecting to it was
	err    error // of the last time
}

// New makes Servers.
func New(cfg Config) *Servers {
	cfg.Limits = cfg.Limits.withDefaults()
	s := &Servers{cfg: cfg}
	for _, one := range cfg.Servers {
		if one.Timeout <= 0 {
			one.Timeout = time.Minute
		}
		s.servers = append(s.servers, &server{Server: one, looked: make(chan struct{}), changed: make(chan struct{}, 1), signed: make(chan struct{}, 1)})
	}
	s.pool = newPool(s)
	return s
}

// Run finds out which tools the servers have, and again when they say that these
// changed, until ctx is done. Then it ends all connections and programs.
func (s *Servers) Run(ctx context.Context) error {
	var looking sync.WaitGroup
	for _, one := range s.servers {
		looking.Go(func() { s.attend(ctx, one) })
	}
	if s.cfg.Shared && len(s.servers) > 0 {
		looking.Go(func() { s.follow(ctx) })
	}
	looking.Wait()
	<-ctx.Done()
	s.pool.closeAll()
	return nil
}

// follow takes over what other processes have accepted, set aside and signed in to.
func (s *Servers) follow(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Limits.Follow)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.cfg.Pins.Load(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("which tools of MCP servers are accepted cannot be read", slog.Any("error", err))
		}
		s.followLogins(ctx)
	}
}

// Await waits until it was tried to find out the tools of each server of which nothing is
// known yet: until ctx is done at most.
func (s *Servers) Await(ctx context.Context) {
	for _, one := range s.servers {
		if s.cfg.Pins.Known(one.Name) {
			continue
		}
		select {
		case <-one.looked:
		case <-ctx.Done():
			return
		}
	}
}

// Version grows whenever Tools may give others.
func (s *Servers) Version() int64 { return s.cfg.Pins.Version() }

// Tools are those of the servers with these names.
func (s *Servers) Tools(names ...string) []tools.Tool {
	var all []tools.Tool
	for _, one := range s.servers {
		if !slices.Contains(names, one.Name) {
			continue
		}
		offered := s.cfg.Pins.Offered(one.Name)
		for i, alias := range aliases(one.Name, offered) {
			if matchesAny(one.Tools, offered[i].Name) {
				all = append(all, newTool(s, one, offered[i], alias))
			}
		}
	}
	return all
}

// A State is how a server stands.
type State struct {
	Name  string
	Tools []pins.Tool // that are offered
	Aside []pins.Tool // that wait for an owner
	Up    bool        // it was reached when that was last tried
	Err   error       // why not; nil also before it was tried
}

// States tells how all servers stand.
func (s *Servers) States() []State {
	var all []State
	for _, one := range s.servers {
		up, err := one.stands()
		all = append(all, State{Name: one.Name, Tools: s.cfg.Pins.Offered(one.Name), Aside: s.cfg.Pins.Aside(one.Name), Up: up, Err: err})
	}
	return all
}

// stands tells whether a server was reached when that was last tried.
func (s *server) stands() (up bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried && s.err == nil, s.err
}

// errClosing says that the process ends.
var errClosing = errors.New("the server is shutting down")
