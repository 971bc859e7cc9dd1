package routing

import (
	"cmp"
	"context"
	"log/slog"

	"parley/channels"
)

// scopeSubject is the subject of the notes that store how each channel's messages were last divided into sessions.
const scopeSubject = "session_scope"

// ScopeNotes is the part of the book that remembers scopes; see [channels.Notes].
type ScopeNotes interface {
	SetNote(ctx context.Context, subject, about, value string) error
	Noted(ctx context.Context, subject, about string) (channels.Note, error)
}

// WarnOfScopeChange logs a warning if a channel's messages are divided into sessions in a different way than when it
// was last called for the channel. Without a note, it takes that to have been "thread", the default. If the book
// fails, it only logs that.
func WarnOfScopeChange(ctx context.Context, notes ScopeNotes, channel, scope string, log *slog.Logger) {
	was, err := notes.Noted(ctx, scopeSubject, channel)
	if err == nil && was.Value != scope {
		if was.Value != "" || scope != scopeThread {
			log.Warn("conversations on this channel begin anew: what was said before stays in the sessions in which it was said",
				slog.String("key", "channels."+channel+".session"), slog.String("was", cmp.Or(was.Value, scopeThread)), slog.String("is", scope))
		}
		err = notes.SetNote(ctx, scopeSubject, channel, scope)
	}
	if err != nil && ctx.Err() == nil {
		log.Warn("it is not known whether conversations begin anew", slog.String("channel", channel), slog.Any("error", err))
	}
}
