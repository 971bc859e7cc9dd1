package redisbus

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"parley/bus"
)

const dayLength = int64(24 * time.Hour / time.Microsecond)

// Publish implements bus.Bus. It does not try again by itself: its caller may
// have to give way to a platform meanwhile.
func (b *Bus) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	if err := check(topic, m); err != nil {
		return err
	}
	t := b.keys.topic(topic)
	body := bytes.Clone(m.Body) // the call may outlive this one
	count, size := b.caps.Room(topic, m)
	_, err := b.accept(ctx, func(day int64) *call {
		return &call{script: publishScript, size: len(body), keys: b.acceptKeys(&t, m.Key, m.ID, day), args: []any{
			string(topic), m.Key, m.ID, count, size, flag(m.Urgent), toMicro(m.NotBefore), day, b.keys.notes(""), body,
		}}
	})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

func check(topic bus.Topic, m bus.Message) error {
	for _, x := range []struct {
		what string
		size int
		ok   bool
	}{
		{"topic", len(topic), topic != ""},
		{"id", len(m.ID), isName(m.ID, bus.MaxID)},
		{"key", len(m.Key), isName(m.Key, bus.MaxKey)},
		{"body", len(m.Body), len(m.Body) <= bus.MaxBody},
	} {
		if !x.ok {
			return fmt.Errorf("%w: %s of %d bytes", bus.ErrInvalid, x.what, x.size)
		}
	}
	return nil
}

func isName(s string, longest int) bool {
	return s != "" && len(s) <= longest && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

func (b *Bus) acceptKeys(t *topicKeys, key, id string, day int64) []string {
	return []string{
		b.keys.clock(), b.keys.topics(), t.state, t.due, t.wake, t.heads, t.mail(key), t.seen(day, id), t.seen(day-1, id),
	}
}

// What the scripts publish and replay answer, beside that it is done.
const (
	answerKnown = "known"
	answerFull  = "full"
	answerMuch  = "much"
	answerDay   = "day"
	answerGone  = "gone"
)

// accept runs a call that stores a message, and returns the script's answer.
// Which sets of ids it has to look at depends on the day, which is the server's;
// where ours differs it says so.
func (b *Bus) accept(ctx context.Context, ask func(day int64) *call) (string, error) {
	for {
		r, err := b.courier.send(ctx, ask(b.day.Load()))
		if err != nil {
			return "", b.over(err)
		}
		switch answer := r.at(0).text(); answer {
		case answerDay:
			b.day.Store(r.at(1).number())
		case answerFull:
			return answer, bus.ErrFull
		case answerMuch:
			return answer, bus.ErrTooMuch
		case answerGone:
			return answer, bus.ErrNotFound
		default:
			return answer, nil
		}
	}
}
