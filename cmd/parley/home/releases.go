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
	understandsAsks   = 1 // turns that wait for people
	understandsPeople = 2 // sessions of one person in a place that others share
	understandsFiles  = 3 // files that go with an answer; and those that come, and pictures, which are older
	understandsTimes  = 4 // what schedules say
	understandsJobs   = 5 // that a job has ended
	understandsGrowth = 6 // drafts that are messages that grow
	understandsParts  = 7 // summaries of a part of a turn that goes on
	understands       = understandsParts
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
	able, err := h.allUnderstand(ctx, understandsAsks)
	if err != nil || able {
		return "", err
	}
	return "a process of an older release still serves", nil
}

// MayPart tells whether people may have sessions of their own in a place that they
// share: processes of an older release would take the key of such a session for none.
func (h *Home) MayPart(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsPeople)
}

// MayGrow tells whether a draft may be a message that grows: a process of an older release
// that takes over the channel could neither find it nor replace it with the answer.
func (h *Home) MayGrow(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsGrowth)
}

// MaySumUp tells whether a summary may stand for a part of a turn that goes on: a process of
// an older release would take that turn for one of a conversation that has ended.
func (h *Home) MaySumUp(ctx context.Context) (bool, error) {
	return h.allUnderstand(ctx, understandsParts)
}

// allUnderstand tells whether all processes that serve understand that much.
func (h *Home) allUnderstand(ctx context.Context, least int) (bool, error) {
	all, err := h.Bus.Processes(ctx)
	if err != nil {
		return false, err
	}
	return h.Book.Understand(ctx, all, least)
}

// MaySchedule says why nothing can be scheduled now; "" where it can. A process of an older
// release would leave alone the sessions in which a schedule speaks.
func (h *Home) MaySchedule(ctx context.Context) (why string, err error) {
	able, err := h.allUnderstand(ctx, understandsTimes)
	if err != nil || able {
		return "", err
	}
	return "a process of an older release still serves", nil
}

// How long a process that has just begun to serve has to say what it understands, before a
// file is refused on its account.
const (
	sayWithin = 3 * time.Second
	askEvery  = 200 * time.Millisecond
)

// MayNote says why files that come with messages, and pictures that tools show, cannot be
// noted in a log now; "" where they can. A process of an older release would leave a session
// alone that has such an entry.
func (h *Home) MayNote(ctx context.Context) (why string, err error) {
	for deadline := time.Now().Add(sayWithin); ; {
		if why, err = h.MayEnclose(ctx); err != nil || why == "" || time.Now().After(deadline) {
			return why, err
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// MayRunJobs says why nothing can be run in the background now; "" where it can. A process
// of an older release would leave alone the sessions that are told of a job's end.
func (h *Home) MayRunJobs(ctx context.Context) (why string, err error) {
	able, err := h.allUnderstand(ctx, understandsJobs)
	if err != nil || able {
		return "", err
	}
	return "a process of an older release still serves", nil
}

// MayEnclose says why no answer may have files now; "" where it may. A process of an older
// release that goes on with the turn would send the text alone.
func (h *Home) MayEnclose(ctx context.Context) (why string, err error) {
	able, err := h.allUnderstand(ctx, understandsFiles)
	if err != nil || able {
		return "", err
	}
	return "a process of an older release still serves", nil
}
