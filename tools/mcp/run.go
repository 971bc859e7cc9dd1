package mcp

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/tools"
)

// New makes Servers. Call Run to find out their tools.
func New(cfg Config) *Servers {
	cfg.Limits = cfg.Limits.withDefaults()
	s := &Servers{cfg: cfg}
	for _, one := range cfg.Servers {
		if one.Timeout <= 0 {
			one.Timeout = time.Minute
		}
		s.servers = append(s.servers, &server{Server: one, firstListingDone: make(chan struct{}), changed: make(chan struct{}, 1), signedIn: make(chan struct{}, 1)})
	}
	s.pool = newPool(s)
	return s
}

// Run lists the tools of the servers, and lists them again when a server says that they changed,
// until ctx is done. Then it ends all connections and programs.
func (s *Servers) Run(ctx context.Context) error {
	var looking sync.WaitGroup
	for _, one := range s.servers {
		looking.Go(func() { s.watchTools(ctx, one) })
	}
	if s.cfg.Shared && len(s.servers) > 0 {
		looking.Go(func() { s.follow(ctx) })
	}
	looking.Wait()
	<-ctx.Done()
	s.pool.closeAll()
	return nil
}

// follow checks at intervals what other processes have recorded: which tools were accepted or set
// aside, and where somebody has signed in.
func (s *Servers) follow(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Limits.FollowInterval)
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
		s.followSignIns(ctx)
	}
}

// followSignIns finds the servers to which somebody has signed in through another process, and has
// their tools listed.
func (s *Servers) followSignIns(ctx context.Context) {
	for _, one := range s.servers {
		_, err := one.lastOutcome()
		if _, wants := errors.AsType[*SignInNeededError](err); !wants {
			continue
		}
		if token, err := s.cfg.SignIn.Renew(ctx, one.signinServer(), ""); err == nil && token != "" {
			s.SignedIn(one.Name)
		}
	}
}

// SignedIn tells Servers that somebody has signed in to a server. Its tools are then listed again.
func (s *Servers) SignedIn(name string) {
	i := slices.IndexFunc(s.servers, func(one *server) bool { return one.Name == name })
	if i < 0 {
		return
	}
	s.pool.clearFailures(name)
	select {
	case s.servers[i].signedIn <- struct{}{}:
	default: // a signal is already pending
	}
}

// Tools returns the tools of the named servers, as agents see them: those that are offered and match Server.Tools.
// Without names, it returns none.
func (s *Servers) Tools(names ...string) []tools.Tool {
	var all []tools.Tool
	for _, one := range s.servers {
		if !slices.Contains(names, one.Name) {
			continue
		}
		offered := s.cfg.Pins.OfferedTools(one.Name)
		for i, alias := range aliases(one.Name, offered) {
			if matchesAny(one.Tools, offered[i].Name) {
				all = append(all, newTool(s, one, offered[i], alias))
			}
		}
	}
	return all
}
