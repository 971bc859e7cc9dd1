package redisbus

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"parley/bus"
)

const dayLength = int64(24 * time.Hour / time.Microsecond)

// A publisher stores messages.
type publisher struct {
	*connection
	caps      bus.Caps
	serverDay atomic.Int64 // the day that this process believes it to be on the server (see accept)
}

func newPublisher(c *connection, caps bus.Caps) *publisher {
	p := &publisher{connection: c, caps: caps}
	p.serverDay.Store(time.Now().UnixMicro() / dayLength)
	return p
}

// Publish implements bus.Bus: one script checks the id and the cap, and stores the message. It does
// not retry by itself, because its caller may have to answer a platform in time.
func (p *publisher) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	if err := checkMessage(topic, m); err != nil {
		return err
	}
	t := p.keys.topic(topic)
	body := bytes.Clone(m.Body) // the script may be sent after Publish has returned
	count, size := p.caps.Room(topic, m)
	_, err := p.accept(ctx, func(day int64) *call {
		return &call{script: publishScript, size: len(body), keys: p.acceptKeys(&t, m.Key, m.ID, day), args: []any{
			string(topic), m.Key, m.ID, count, size, boolArg(m.Urgent), toMicro(m.NotBefore), day, p.keys.notes(""), body,
		}}
	})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	return nil
}

// checkMessage returns an ErrInvalid if a message can never be accepted.
func checkMessage(topic bus.Topic, m bus.Message) error {
	for _, x := range []struct {
		what string
		size int
		ok   bool
	}{
		{"topic", len(topic), topic != ""},
		{"id", len(m.ID), isValidName(m.ID, bus.MaxID)},
		{"key", len(m.Key), isValidName(m.Key, bus.MaxKey)},
		{"body", len(m.Body), len(m.Body) <= bus.MaxBody},
	} {
		if !x.ok {
			return fmt.Errorf("%w: %s of %d bytes", bus.ErrInvalid, x.what, x.size)
		}
	}
	return nil
}

func isValidName(s string, longest int) bool {
	return s != "" && len(s) <= longest && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

// boolArg returns a boolean as an argument of a script.
func boolArg(on bool) int {
	if on {
		return 1
	}
	return 0
}

// acceptKeys returns the Redis keys that a script which stores a message has to declare.
func (p *publisher) acceptKeys(t *topicKeys, key, id string, day int64) []string {
	return []string{
		p.keys.clock(), p.keys.topics(), t.state, t.due, t.wake, t.heads, t.mail(key), t.seenIDs(day, id), t.seenIDs(day-1, id), t.lastHolder(key),
	}
}

// These are the answers of the scripts publish, replay and import_message if they have not stored the message.
const (
	answerKnown = "known" // the id was published lately
	answerFull  = "full"  // the mailbox is full
	answerMuch  = "much"  // the waiting messages would have too many bytes
	answerDay   = "day"   // the day on the server is not the day that the caller expects; see accept
	answerGone  = "gone"  // there is no such dead letter to replay
)

// accept runs a script that stores a message, and returns the script's answer; ask makes the call for a
// day. The keys of the sets of known ids contain the server's day, and must be declared before the script
// can look at the clock. If this process believes it to be another day, the script stores nothing and
// returns the day, and accept runs it again.
func (p *publisher) accept(ctx context.Context, ask func(day int64) *call) (string, error) {
	for {
		r, err := p.batcher.send(ctx, ask(p.serverDay.Load()))
		if err != nil {
			return "", p.closedOr(err)
		}
		switch answer := r.at(0).text(); answer {
		case answerDay:
			p.serverDay.Store(r.at(1).number())
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
