package home

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
)

const (
	writeTimeout = 3 * time.Second
	readinessTTL = time.Second // how long a result is reused, because anybody may ask, and each check writes
)

// readiness holds what is known about whether the bus and the store can be written to.
type readiness struct {
	inHome map[string]bool // whether the bus, and the store, are in the home's files
	log    *slog.Logger

	mu        sync.Mutex
	checkedAt time.Time
	results   map[string]error

	bus, store atomic.Bool // whether a write is in progress, however long it takes
}

// Ready checks whether the bus and the store accept writes, which they don't on a full disk or on a
// standby server. It returns an error or nil for each by name; for readinessTTL, it returns the same result again.
// Anybody may read the errors, so they give no details.
func (h *Home) Ready(context.Context) map[string]error {
	r := &h.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.results == nil || time.Since(r.checkedAt) >= readinessTTL {
		r.results = h.checkWrites()
		r.checkedAt = time.Now()
	}
	return maps.Clone(r.results)
}

// checkWrites writes to the bus and to the store, each within writeTimeout. It takes no ctx: its
// result is cached for other callers, too, so it continues when the caller leaves.
func (h *Home) checkWrites() map[string]error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	checks := map[string]func(context.Context) error{
		"bus":   func(ctx context.Context) error { return writeWithTimeout(ctx, &h.ready.bus, h.Bus.Writable) },
		"store": func(ctx context.Context) error { return writeWithTimeout(ctx, &h.ready.store, h.Store.Writable) },
	}
	var space error // the error for the home's disk
	if h.ready.inHome["bus"] || h.ready.inHome["store"] {
		space = checkSpace(h.Dir)
	}
	var mu sync.Mutex
	var checking sync.WaitGroup
	parts := map[string]error{}
	for name, check := range checks {
		checking.Go(func() {
			err := check(ctx)
			if h.ready.inHome[name] && err == nil {
				err = space
			}
			if err != nil {
				h.ready.log.Warn("a part is not ready", slog.String("part", name), slog.Any("error", err))
				err = errors.New("doesn't accept writes")
			}
			mu.Lock()
			defer mu.Unlock()
			parts[name] = err
		})
	}
	checking.Wait()
	return parts
}

// checkSpace writes a file of 1 MiB to the home and removes it, to find out whether the disk has
// room. SQLite's own files still have room for a while after the disk is full.
func checkSpace(home string) error {
	const some = 1 << 20
	path := filepath.Join(home, "room.tmp")
	err := os.WriteFile(path, make([]byte, some), 0o600)
	if err := errors.Join(err, os.Remove(path)); err != nil {
		return fmt.Errorf("check the room on the home's disk: %w", err)
	}
	return nil
}

// errWritePending means that an earlier write has not returned yet.
var errWritePending = errors.New("an earlier write is still under way")

// writeWithTimeout calls write, which may not return when ctx is done, and stops waiting for it
// then. The write then continues, and until it has returned, further calls return errWritePending.
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
