package channels

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/bus"
)

// excuse tells a chat that an answer to it will not come, where the platform has
// taken offence at the answer and not at the chat. It has an id of its own, made
// of the answer's, so it is said once; and no session, so that nothing is said of
// what becomes of it.
func (l *letter) excuse(work context.Context, code string) (verdict, bool) {
	if l.out.Session == "" || l.out.Told != nil || len(l.out.Fallback) > 0 || !ofTheContent(code) {
		return verdict{}, true
	}
	text := "I had an answer here"
	for i := range l.send.Parts {
		if l.through(i) {
			text = "There is more to this answer"
		}
	}
	text += ", but it cannot be shown: " + inWords(code) + ". Please ask again, perhaps for something shorter or plainer."
	out := bus.Outbound{ID: noticeID(l.send.ID, "#excuse"), To: l.out.To, Text: text, At: time.Now()}
	err := l.publish(work, out)
	switch {
	case err == nil:
	case errors.Is(err, bus.ErrInvalid):
		l.Log.Error("chat cannot be told that its answer was refused", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
	default:
		l.Log.Warn("chat could not be told that its answer was refused", slog.String("channel", l.Name), slog.String("id", l.send.ID), slog.Any("error", err))
		return later(outOfOrder), false
	}
	l.point("send:excused")
	return verdict{}, true
}

// ofTheContent tells of a code that another message could still be sent to the
// same place.
func ofTheContent(code string) bool {
	switch code {
	case expired, gaveUp, uncertain, badAddress,
		"thread_not_found", "invalid_thread_ts", "topic_closed",
		"restricted_action", "user_not_found", "user_disabled", "cannot_dm_bot", "ekm_access_denied",
		"403", "404", "10008", "50083", "50278":
		return false
	}
	return !ofTheChat(code)
}
