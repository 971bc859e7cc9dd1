package gateway

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/bus"
	"parley/channels"
)

const (
	// earlierTimeout is how long a message may wait while the thread's earlier messages are read.
	earlierTimeout = 5 * time.Second
	// The maximum length of the quoted messages from the thread, in characters: of each one, and of all together.
	maxEarlierMessage = 1500
	maxEarlierTotal   = 12_000
	cutMark           = " […]"
)

// addEarlier adds the earlier messages of a thread, as quotes, to a message that calls the bot, or another agent,
// into that thread. If they can't be read in time, the quotes say so.
func (d *receiver) addEarlier(ctx context.Context, in bus.Inbound, to RouteResult) bus.Inbound {
	reader, can := channels.AsThreadReader(d.Channel)
	if !can || d.HistoryLength == nil || !in.Group || in.At.Thread == "" || in.Kind != bus.Said {
		return in
	}
	most := d.HistoryLength()
	if most <= 0 {
		return in
	}
	ctx, cancel := context.WithTimeout(ctx, earlierTimeout)
	defer cancel()
	another, err := d.callsAnother(ctx, in, to)
	var earlier []bus.Quote
	if err == nil {
		earlier, err = reader.MessagesBefore(ctx, in, most, another)
	}
	if err != nil {
		d.Log.Warn("the earlier messages in a thread cannot be read", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		earlier = []bus.Quote{{Kind: bus.Earlier, Text: textNoEarlier}}
	}
	in.Quotes = append(newestFitting(earlier), in.Quotes...)
	return in
}

// callsAnother reports whether a message names a different agent than the one that people have talked to in its
// thread so far.
func (d *receiver) callsAnother(ctx context.Context, in bus.Inbound, to RouteResult) (bool, error) {
	if !to.NamesAgent {
		return false, nil
	}
	session, err := d.Chats.SessionAt(ctx, in.At)
	was, _, _ := strings.Cut(session, ":")
	return session != "" && !strings.HasPrefix(to.Session, was+":"), err
}

// newestFitting returns the newest of the earlier messages, as many as fit, each cut to the maximum length.
func newestFitting(earlier []bus.Quote) []bus.Quote {
	left := maxEarlierTotal
	first := len(earlier)
	for first > 0 {
		q := &earlier[first-1]
		if n := utf8.RuneCountInString(q.Text); n > maxEarlierMessage {
			q.Text = string([]rune(q.Text)[:maxEarlierMessage-len([]rune(cutMark))]) + cutMark
		}
		if left -= utf8.RuneCountInString(q.Text); left < 0 {
			break
		}
		first--
	}
	return slices.Clone(earlier[first:])
}
