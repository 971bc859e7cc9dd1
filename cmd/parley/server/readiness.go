package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"parley/bus"
)

const (
	readyPatience = 3 * time.Second
	readyFor      = time.Second // anybody may ask, and to find out costs writes
)

// A readiness is what was last found out about the parts that everything hangs on.
type readiness struct {
	mu    sync.Mutex
	at    time.Time
	parts map[string]error

	bus, store atomic.Bool // a write is under way, however long it takes
}

// ready checks the parts that everything hangs on: whether they take writes, which
// a full disk and a standby do not, and whether the channels are connected. Anybody
// may read what it says, so it says no more than which part.
func (s *Server) ready(context.Context) map[string]error {
	s.readiness.mu.Lock()
	defer s.readiness.mu.Unlock()
	if s.readiness.parts == nil || time.Since(s.readiness.at) >= readyFor {
		s.readiness.parts = s.writable()
		s.readiness.at = time.Now()
	}
	parts := maps.Clone(s.readiness.parts)
	for name, up := range s.connected() {
		parts["channel "+name] = nil
		if !up {
			parts["channel "+name] = errors.New("not connected")
		}
	}
	return parts
}

// writable writes to the bus and to the store, each within its time. Others may ask
// for the answer too, so no caller's leaving ends it.
func (s *Server) writable() map[string]error {
	ctx, cancel := context.WithTimeout(context.Background(), readyPatience)
	defer cancel()
	checks := map[string]func(context.Context) error{
		"bus":   func(ctx context.Context) error { return within(ctx, &s.readiness.bus, s.home.Bus.Writable) },
		"store": func(ctx context.Context) error { return within(ctx, &s.readiness.store, s.home.Store.Writable) },
	}
	space := hasSpace(s.home.Dir)
	settings := s.settings.Load()
	inHome := map[string]bool{"bus": settings.Bus.URL == "", "store": settings.Store.URL == ""}
	var mu sync.Mutex
	var checking sync.WaitGroup
	parts := map[string]error{}
	for name, check := range checks {
		checking.Go(func() {
			err := check(ctx)
			if inHome[name] && err == nil {
				err = space
			}
			if err != nil {
				s.log.Warn("a part is not ready", slog.String("part", name), slog.Any("error", err))
				err = errors.New("takes no writes")
			}
			mu.Lock()
			defer mu.Unlock()
			parts[name] = err
		})
	}
	checking.Wait()
	return parts
}

// hasSpace tells whether there is room for what is about to come. SQLite's own
// files have room for a while after the disk has none.
func hasSpace(home string) error {
	const some = 1 << 20
	path := filepath.Join(home, "room.tmp")
	err := os.WriteFile(path, make([]byte, some), 0o600)
	if err := errors.Join(err, os.Remove(path)); err != nil {
		return fmt.Errorf("look for room on the home's disk: %w", err)
	}
	return nil
}

// errStuck says that an earlier write has not come back.
var errStuck = errors.New("an earlier write is still under way")

// within ends the wait for a write that does not end with ctx itself. It goes on,
// and until it is over there is no other.
func within(ctx context.Context, busy *atomic.Bool, write func(context.Context) error) error {
	if !busy.CompareAndSwap(false, true) {
		return errStuck
	}
	ended := make(chan error, 1)
	go func() {
		defer busy.Store(false)
		ended <- write(ctx)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fleetHold is the name that who tells what the whole fleet shares holds.
const fleetHold = "metrics"

// tellFleet makes this process the one whose metrics tell what the fleet shares,
// while it holds that name. Only processes that listen do so: others are not asked.
func (s *Server) tellFleet(ctx context.Context) {
	err := bus.WhileHeld(ctx, s.home.Bus, fleetHold, func(held context.Context) error {
		s.tells.Store(true)
		<-held.Done()
		s.tells.Store(false)
		return nil
	})
	if err != nil {
		s.log.Warn("this process cannot tell what the fleet shares", slog.Any("error", err))
	}
}

// A troubles handler passes a channel's log on and remembers the latest warning,
// so that status can say why a channel is not connected.
type troubles struct {
	slog.Handler
	latest *atomic.Pointer[string]
}

// withTroubles makes a log that remembers in latest.
func withTroubles(log *slog.Logger, latest *atomic.Pointer[string]) *slog.Logger {
	return slog.New(&troubles{log.Handler(), latest})
}

// Enabled takes warnings also where the log leaves them out.
func (t *troubles) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || t.Handler.Enabled(ctx, level)
}

// Handle remembers a warning and passes on what the log wants.
func (t *troubles) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		said := r.Message
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "error" || a.Key == "code" {
				said += fmt.Sprintf(": %v", a.Value)
			}
			return true
		})
		t.latest.Store(&said)
	}
	if !t.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (t *troubles) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &troubles{t.Handler.WithAttrs(attrs), t.latest}
}

// WithGroup implements slog.Handler.
func (t *troubles) WithGroup(name string) slog.Handler {
	return &troubles{t.Handler.WithGroup(name), t.latest}
}

// trouble is why a channel is not in touch with its platform, as far as is known.
func (s *Server) trouble(channel string) string {
	for _, l := range s.channels {
		if l.name != channel {
			continue
		}
		if said := l.trouble.Load(); said != nil {
			return *said
		}
	}
	return ""
}
