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
	writeTimeout = 3 * time.Second
	readinessTTL = time.Second // how long a result is used for further requests: anybody may ask, and each check writes
)

// A readiness caches whether the bus and the store can be written to.
type readiness struct {
	mu    sync.Mutex
	at    time.Time
	parts map[string]error

	bus, store atomic.Bool // whether a write is under way, however long it takes
}

// checkReady checks whether the bus and the store take writes, which a full disk and a
// standby do not, and whether the channels are connected. It returns an error or nil for
// each part by name. Anybody may read the errors, so they give no details.
func (s *Server) checkReady(context.Context) map[string]error {
	s.readiness.mu.Lock()
	defer s.readiness.mu.Unlock()
	if s.readiness.parts == nil || time.Since(s.readiness.at) >= readinessTTL {
		s.readiness.parts = s.checkWrites()
		s.readiness.at = time.Now()
	}
	parts := maps.Clone(s.readiness.parts)
	for name, up := range s.connectionStates() {
		parts["channel "+name] = nil
		if !up {
			parts["channel "+name] = errors.New("not connected")
		}
	}
	return parts
}

// checkWrites writes to the bus and to the store, each within writeTimeout. It has no ctx: its
// result is cached for other callers too, so it goes on when the caller leaves.
func (s *Server) checkWrites() map[string]error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	checks := map[string]func(context.Context) error{
		"bus": func(ctx context.Context) error { return writeWithTimeout(ctx, &s.readiness.bus, s.home.Bus.Writable) },
		"store": func(ctx context.Context) error {
			return writeWithTimeout(ctx, &s.readiness.store, s.home.Store.Writable)
		},
	}
	space := checkSpace(s.home.Dir)
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

// checkSpace writes a file of 1 MiB to the home and removes it, to find out whether the
// disk has room. SQLite's own files have room for a while after the disk has none.
func checkSpace(home string) error {
	const some = 1 << 20
	path := filepath.Join(home, "room.tmp")
	err := os.WriteFile(path, make([]byte, some), 0o600)
	if err := errors.Join(err, os.Remove(path)); err != nil {
		return fmt.Errorf("look for room on the home's disk: %w", err)
	}
	return nil
}

// errWritePending means that an earlier write has not returned yet.
var errWritePending = errors.New("an earlier write is still under way")

// writeWithTimeout calls write, which may not end with ctx, and stops waiting for it when
// ctx is done. The write goes on then, and until it has ended, further calls return
// errWritePending.
func writeWithTimeout(ctx context.Context, busy *atomic.Bool, write func(context.Context) error) error {
	if !busy.CompareAndSwap(false, true) {
		return errWritePending
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

// fleetMetricsHold is the name, held on the bus by one process at a time, that says whose metrics
// include those of the whole fleet.
const fleetMetricsHold = "metrics"

// includeFleetMetrics has this process's metrics include those of the whole fleet while it holds
// fleetMetricsHold, which it tries to get until ctx is done. Only processes that listen on HTTP do
// so, because nobody asks the others for metrics.
func (s *Server) includeFleetMetrics(ctx context.Context) {
	err := bus.WhileHeld(ctx, s.home.Bus, fleetMetricsHold, func(held context.Context) error {
		s.includesFleet.Store(true)
		<-held.Done()
		s.includesFleet.Store(false)
		return nil
	})
	if err != nil {
		s.log.Warn("this process cannot tell what the fleet shares", slog.Any("error", err))
	}
}

// A warningRecorder passes a channel's log on and remembers the latest warning, so that
// status can say why a channel is not connected.
type warningRecorder struct {
	slog.Handler
	latest *atomic.Pointer[string]
}

// recordWarnings returns a logger that stores its latest warning in latest.
func recordWarnings(log *slog.Logger, latest *atomic.Pointer[string]) *slog.Logger {
	return slog.New(&warningRecorder{log.Handler(), latest})
}

// Enabled accepts warnings even where the log leaves them out.
func (t *warningRecorder) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || t.Handler.Enabled(ctx, level)
}

// Handle remembers a warning, and passes the record on if the log wants it.
func (t *warningRecorder) Handle(ctx context.Context, r slog.Record) error {
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

// WithAttrs implements slog.Handler; the new handler remembers warnings in the same
// place.
func (t *warningRecorder) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warningRecorder{t.Handler.WithAttrs(attrs), t.latest}
}

// WithGroup implements slog.Handler; the new handler remembers warnings in the same
// place.
func (t *warningRecorder) WithGroup(name string) slog.Handler {
	return &warningRecorder{t.Handler.WithGroup(name), t.latest}
}

// lastWarning returns the latest warning of a channel's adapter, which probably says why the
// channel is not connected; "" if there was none.
func (s *Server) lastWarning(channel string) string {
	for _, l := range s.channels {
		if l.name != channel {
			continue
		}
		if said := l.lastWarning.Load(); said != nil {
			return *said
		}
	}
	return ""
}
