package mcp

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"

	"parley/tools/mcp/pins"
	"parley/tools/sandbox"
)

// maxRetryWait is the longest wait before trying again to reach a server.
const maxRetryWait = 5 * time.Minute

// watchTools lists the tools of one server until ctx is done: at the start, repeatedly until that
// has worked, and whenever the server has said that they changed. If a server says so very often,
// watchTools asks it only now and then.
func (s *Servers) watchTools(ctx context.Context, one *server) {
	wait := s.cfg.Limits.Backoff
	told := ""
	for ctx.Err() == nil {
		_, err := s.check(ctx, one)
		if ctx.Err() != nil {
			return
		}
		s.recordOutcome(ctx, one, err)
		one.once.Do(func() { close(one.firstListingDone) })
		if err != nil {
			if told != err.Error() {
				told = err.Error()
				s.cfg.Log.Warn("the tools of an MCP server cannot be listed", slog.String("server", one.Name), slog.Any("error", err))
			}
			if !one.pause(ctx, wait) {
				return
			}
			wait = min(2*wait, maxRetryWait)
			continue
		}
		wait, told = s.cfg.Limits.Backoff, ""
		select {
		case <-ctx.Done():
			return
		case <-one.changed:
		case <-one.signedIn:
			continue
		}
		if !one.pause(ctx, s.cfg.Limits.ListInterval) {
			return
		}
		select { // the next listing includes changes announced in the meantime
		case <-one.changed:
		default:
		}
	}
}

// recordOutcome records how the latest attempt to connect to a server ended. It reports a server that now wants
// somebody to sign in, and did not before.
func (s *Servers) recordOutcome(ctx context.Context, one *server, err error) {
	one.mu.Lock()
	_, wanted := errors.AsType[*SignInNeededError](one.err)
	one.attempted, one.err = true, err
	one.mu.Unlock()
	if _, wants := errors.AsType[*SignInNeededError](err); wants && !wanted && s.cfg.SignInNeeded != nil {
		s.cfg.SignInNeeded(ctx, one.Name)
	}
}

// pause waits for d, or until somebody has signed in to the server. It returns false if ctx ends
// first.
func (s *server) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.signedIn:
	case <-timer.C:
	}
	return true
}

// Check asks a server for its tools now, no matter what is already known about it, and compares
// them with the accepted ones. It returns ErrNoServer if no server has this name.
func (s *Servers) Check(ctx context.Context, name string) (Listing, error) {
	i := slices.IndexFunc(s.servers, func(one *server) bool { return one.Name == name })
	if i < 0 {
		return Listing{}, ErrNoServer
	}
	listing, err := s.check(ctx, s.servers[i])
	if ctx.Err() == nil {
		s.recordOutcome(ctx, s.servers[i], err)
	}
	return listing, err
}

// check lists the tools of a server, and compares them with the accepted ones. A program that is
// run for this sees an empty folder instead of a workspace.
func (s *Servers) check(ctx context.Context, one *server) (l Listing, err error) {
	var place sandbox.Place
	if !one.Web() && !one.Shared {
		dir, err := os.MkdirTemp("", "parley-mcp-")
		if err != nil {
			return Listing{}, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		place.Workspace = dir
	}
	began := time.Now()
	c, err := s.connect(ctx, one, place, time.Time{})
	if err != nil {
		return Listing{}, err
	}
	defer c.close()
	l = Listing{Tools: c.tools, Unusable: c.unusable, Took: time.Since(began)}
	return l, s.observe(ctx, one, c.tools)
}

// observe compares the tools that a server lists with the accepted ones, and reports those that
// agents don't get until an owner accepts them.
func (s *Servers) observe(ctx context.Context, one *server, listed []pins.Tool) error {
	aside, err := s.cfg.Pins.Observe(ctx, one.Name, listed)
	if len(aside) > 0 {
		s.cfg.Log.Warn("tools of an MCP server are new or have changed, and wait until an owner accepts them",
			slog.String("server", one.Name), slog.Int("tools", len(aside)))
		if s.cfg.ToolsSetAside != nil {
			s.cfg.ToolsSetAside(ctx, one.Name, aside)
		}
	}
	return err
}
