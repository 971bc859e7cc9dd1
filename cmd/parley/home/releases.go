package home

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// What a process understands of what others write is a number, which each release
// that adds to it raises. Releases from before the first say nothing.
const (
	understandsAsks = 1 // turns that wait for people
	understands     = understandsAsks
)

// endTimeout bounds how long a process takes to say that it ends.
const endTimeout = 2 * time.Second

// announce notes what this process understands, for others who write what older
// releases do not know. While one runs that cannot note it, because it may only read,
// the others write nothing of that kind.
func (h *Home) announce(ctx context.Context, log *slog.Logger) error {
	all, err := h.Bus.Processes(ctx)
	if err != nil {
		return fmt.Errorf("look which processes serve: %w", err)
	}
	if err := h.Book.NoteProcess(ctx, all[0], understands); err != nil {
		log.Debug("this process could not say what it understands", slog.Any("error", err))
		return nil
	}
	h.self = all[0]
	return nil
}

// leave removes this process's note. A process that is killed leaves its note behind;
// that does no harm, since the bus no longer lists the process.
func (h *Home) leave() {
	if h.self == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = h.Book.NoteProcess(ctx, h.self, 0) // as good as killed then
}

// MayPark says why no turn may wait for people now; "" where it may. Processes of an
// older release would not know what such a turn is.
func (h *Home) MayPark(ctx context.Context) (why string, err error) {
	all, err := h.Bus.Processes(ctx)
	if err != nil {
		return "", err
	}
	able, err := h.Book.Understand(ctx, all, understandsAsks)
	if err != nil || able {
		return "", err
	}
	return "a process of an older release still serves", nil
}
