// Package mcpservers runs the configured MCP servers, which are programs and services that offer
// tools, and gives their tools to agents.
package mcpservers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/config"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/pins"
	"parley/tools/mcp/signin"
	"parley/tools/sandbox"
)

// Config holds the parts that the servers need.
type Config struct {
	Settings *config.Config
	Sandbox  sandbox.Sandbox // nil means that no programs are run
	Notes    channels.Notes  // records which tools are accepted, and who has signed in
	Bus      bus.Holder
	Place    func(ctx context.Context, call tools.Call) (sandbox.Place, error)
	Changed  func(call tools.Call)
	Keep     func(ctx context.Context, call tools.Call, name string, content []byte) (path string, err error)
	Show     func(ctx context.Context, call tools.Call, path string) (tools.Picture, error)
	// Tell sends a text to the owners.
	Tell func(ctx context.Context, subject, text string)
	// Elsewhere says that other processes in the fleet run those MCP servers that are programs.
	Elsewhere bool
	Version   string
	Log       *slog.Logger
}

// Servers are the configured MCP servers.
type Servers struct {
	*mcp.Servers
	Pins     *pins.Pins
	settings map[string]config.MCPServer
	// elsewhere is Config.Elsewhere.
	elsewhere bool
	begun     time.Time
	signIn    *signin.Client
	http      config.HTTP
	tell      func(ctx context.Context, subject, text string)
	log       *slog.Logger

	mu   sync.Mutex
	sets map[string]cachedTools // agents' tools, by the names of the MCP servers that they include
}

// A cachedTools holds an agent's own tools together with those of MCP servers, and the version of the servers' tools that
// it was made for.
type cachedTools struct {
	version int64
	base    *tools.Set
	all     *tools.Set
}

// New returns Servers.
func New(c Config) *Servers {
	s := &Servers{
		settings: c.Settings.MCP, elsewhere: c.Elsewhere, Pins: pins.New(notes{c.Notes}), begun: time.Now(), sets: map[string]cachedTools{},
		http: c.Settings.HTTP, signIn: newSignIn(c), tell: c.Tell, log: c.Log,
	}
	var servers []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(c.Settings.MCP)) {
		servers = append(servers, serverOf(c.Settings.MCP[name]))
	}
	s.Servers = mcp.New(mcp.Config{
		Servers: servers, Sandbox: c.Sandbox, Place: c.Place, FilesChanged: c.Changed, SaveFile: c.Keep, PreparePicture: c.Show, Pins: s.Pins,
		ToolsSetAside: func(ctx context.Context, server string, names []string) {
			c.Tell(ctx, "mcp "+server+" "+strings.Join(names, " "), fmt.Sprintf(
				textNewTools,
				server, tools.Clip(strings.Join(names, ", "), 500), server))
		},
		SignIn: s.signIn,
		SignInNeeded: func(ctx context.Context, server string) {
			c.Tell(ctx, "mcp login "+server, fmt.Sprintf(
				textSignInNeeded, server, server))
		},
		Shared: c.Settings.Store.URL != "", Version: c.Version, Log: c.Log,
	})
	return s
}

// Load reads from the book which tools of the servers an owner has accepted.
func (s *Servers) Load(ctx context.Context) error {
	if len(s.settings) == 0 {
		return nil
	}
	return s.Pins.Load(ctx)
}

// Refresh calls Load again in a process that doesn't learn in another way what owners accept, because it uses no
// servers itself. Otherwise it does nothing.
func (s *Servers) Refresh(ctx context.Context) error {
	if !s.elsewhere {
		return nil
	}
	return s.Load(ctx)
}

// serverOf converts the settings of an MCP server to those of package mcp.
func serverOf(m config.MCPServer) mcp.Server {
	one := mcp.Server{Name: m.Name, Env: m.Env, Shared: m.Shared, URL: m.URL, Tools: m.Tools, Timeout: m.Timeout, Defaults: m.Questions == "defaults", ClientID: m.ClientID, ClientSecret: string(m.ClientSecret)}
	if m.Command != "" {
		one.Command = append([]string{m.Command}, m.Args...)
	}
	switch {
	case slices.Contains(m.Network, config.FullNetwork):
		one.Network.Full = true
	case !slices.Contains(m.Network, config.NoNetwork):
		one.Network.Hosts = m.Network
	}
	if len(m.Headers) > 0 {
		one.Headers = map[string]string{}
		for _, pair := range m.Headers {
			name, value, _ := strings.Cut(pair, ":")
			one.Headers[name] = strings.TrimSpace(value)
		}
	}
	return one
}

// startWait is how long after the start turns wait for servers about which nothing is known yet. Most programs are
// ready by then; nobody waits longer for one that is slow, or doesn't start: its tools are available to a later
// turn.
const startWait = time.Second

// With returns an agent's tools base, together with those of its MCP servers. If owned is true, in the owner's
// terminal, the agent gets the tools of all servers.
func (s *Servers) With(ctx context.Context, base *tools.Set, agent string, owned bool) *tools.Set {
	var names []string
	for name, m := range s.settings {
		if owned || slices.Contains(m.Agents, agent) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return base
	}
	if left := startWait - time.Since(s.begun); left > 0 {
		ctx, cancel := context.WithTimeout(ctx, left)
		s.Await(ctx, names...)
		cancel()
	}
	slices.Sort(names)
	key, version := strings.Join(names, " "), s.Version()
	s.mu.Lock()
	defer s.mu.Unlock()
	if made, ok := s.sets[key]; ok && made.version == version && made.base == base {
		return made.all
	}
	all := base.With(s.Tools(names...)...)
	s.sets[key] = cachedTools{version, base, all}
	return all
}

// A notes stores in the book which tools an owner has accepted, and who has signed in.
type notes struct{ channels.Notes }

// Noted implements pins.Store: it returns the values of a subject's notes, keyed by what they are about.
func (n notes) Noted(ctx context.Context, subject string) (map[string]string, error) {
	found, err := n.AllNoted(ctx, subject)
	if err != nil {
		return nil, err
	}
	all := make(map[string]string, len(found))
	for _, r := range found {
		all[r.About] = r.Value
	}
	return all, nil
}
