package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
)

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
