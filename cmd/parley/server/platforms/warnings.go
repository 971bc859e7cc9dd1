package platforms

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// A warningRecorder passes a channel's log on and stores the latest warning, so that status can say
// why a channel is not connected.
type warningRecorder struct {
	slog.Handler
	latest *atomic.Pointer[string]
}

// RecordWarnings returns a logger that writes to log, and stores its latest warning or error in latest.
func RecordWarnings(log *slog.Logger, latest *atomic.Pointer[string]) *slog.Logger {
	return slog.New(&warningRecorder{log.Handler(), latest})
}

// Enabled accepts warnings even if the log leaves them out.
func (t *warningRecorder) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn || t.Handler.Enabled(ctx, level)
}

// Handle stores a warning, and passes the record on if the log wants it.
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

// WithAttrs implements slog.Handler; the new handler stores warnings in the same place.
func (t *warningRecorder) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &warningRecorder{t.Handler.WithAttrs(attrs), t.latest}
}

// WithGroup implements slog.Handler; the new handler stores warnings in the same place.
func (t *warningRecorder) WithGroup(name string) slog.Handler {
	return &warningRecorder{t.Handler.WithGroup(name), t.latest}
}
