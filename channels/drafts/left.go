package drafts

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"parley/channels"
	"parley/channels/backoff"
	"parley/channels/pacing"
)

// loadLeftDrafts reads from the book the drafts that earlier processes have left. It retries until the book
// answers: a message that should replace one of them must not be sent before that. It returns none if ctx ends first.
func (d *Drafts) loadLeftDrafts(ctx context.Context) []*draft {
	for wait := new(backoff.Series); ; {
		known, err := d.conf.RecordedDrafts.Drafts(ctx, d.conf.Name)
		if err == nil {
			return d.adoptDrafts(ctx, known)
		}
		if ctx.Err() != nil {
			return nil
		}
		d.log.Error("drafts cannot be read from the book", slog.Any("error", err))
		if !backoff.Sleep(ctx, wait.Next(pacing.LongestWait)) {
			return nil
		}
	}
}

// adoptDrafts turns recorded drafts into drafts of this process, and closes those that are too old.
func (d *Drafts) adoptDrafts(ctx context.Context, known []channels.Send) []*draft {
	var left []*draft
	for _, send := range known {
		x := newDraft(strings.TrimSuffix(send.ID, draftSuffix), send.To)
		x.platformID = send.Parts[0].PlatformID
		if time.Since(send.At) > idleDraftLifetime {
			d.mark(ctx, x, channels.SentPart{State: channels.Sent, PlatformID: x.platformID})
			continue
		}
		x.lastHeard, x.nextCall = time.Now(), time.Now()
		if x.platformID == "" {
			x.state = draftUnknown
		}
		left = append(left, x)
	}
	return left
}
