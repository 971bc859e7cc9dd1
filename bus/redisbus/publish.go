package redisbus

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/bus"
)

const dayLength = int64(24 * time.Hour / time.Microsecond)

// Publish implements bus.Bus: one script checks the id and the cap, and stores the message. It does
// not retry by itself, because its caller may have to answer a platform in time.
func (b *Bus) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	if err := checkMessage(topic, m); err != nil {
		return err
	}
	t := b.keys.topic(topic)
	body := bytes.Clone(m.Body) // the script may be sent after Publish has returned
	count, size := b.caps.Room(topic, m)
	_, err := b.accept(ctx, func(day int64) *call {
		return &call{script: publishScript, size: len(body), keys: b.acceptKeys(&t, m.Key, m.ID, day), args: []any{
			string(topic), m.Key, m.ID, count, size, boolArg(m.Urgent), toMicro(m.NotBefore), day, b.keys.notes(""), body,
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
func (b *Bus) acceptKeys(t *topicKeys, key, id string, day int64) []string {
	return []string{
		b.keys.clock(), b.keys.topics(), t.state, t.due, t.wake, t.heads, t.mail(key), t.seen(day, id), t.seen(day-1, id),
	}
}

// What the scripts publish, replay and take_letter return if they have not stored the
// message.
const (
	answerKnown = "known" // its id was published lately
	answerFull  = "full"  // its mailbox is full
	answerMuch  = "much"  // the messages that wait would have too many bytes
	answerDay   = "day"   // the caller has guessed another day than the server's; see accept
	answerGone  = "gone"  // there is no such dead letter to replay
)

// accept runs a script that stores a message, and returns the script's answer; ask makes the call
// for a day. The keys of the sets of known ids contain the server's day, and must be declared
// before the script can look at the clock. If this process guessed another day, the script stores
// nothing and returns the day, and accept runs it again.
func (b *Bus) accept(ctx context.Context, ask func(day int64) *call) (string, error) {
	for {
		r, err := b.batcher.send(ctx, ask(b.day.Load()))
		if err != nil {
			return "", b.closedOr(err)
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

// errMalformed says that a value in Redis does not have the form that this package writes.
var errMalformed = errors.New("not as it was written")

// readNumbers reads n numbers from the front of text, each followed by a space.
func readNumbers(text string, n int) (numbers []int64, rest string, err error) {
	for range n {
		field, after, ok := strings.Cut(text, " ")
		if !ok {
			return nil, "", errMalformed
		}
		v, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, "", errMalformed
		}
		numbers, text = append(numbers, v), after
	}
	return numbers, text, nil
}

// splitAt splits text after n bytes.
func splitAt(text string, n int64) (part, rest string, err error) {
	if n < 0 || n > int64(len(text)) {
		return "", "", errMalformed
	}
	return text[:n], text[n:], nil
}

// readLetter reads a message as shared/letter.lua writes it, and returns how many times it
// was replayed.
func readLetter(text, key string, seq int64) (m bus.Message, replays int64, err error) {
	n, rest, err := readNumbers(text, 5)
	if err != nil {
		return m, 0, err
	}
	id, body, err := splitAt(rest, n[4])
	if err != nil {
		return m, 0, err
	}
	m = bus.Message{ID: id, Key: key, Seq: seq, NotBefore: fromMicro(n[0]), Urgent: n[2] == 1, Body: []byte(body)}
	return m, n[3], nil
}

// readDead reads a dead letter as settle.lua writes it.
func readDead(text string, topic bus.Topic) (d bus.DeadLetter, replays int64, err error) {
	n, rest, err := readNumbers(text, 5)
	if err != nil {
		return d, 0, err
	}
	key, rest, err := splitAt(rest, n[3])
	if err != nil {
		return d, 0, err
	}
	reason, rest, err := splitAt(rest, n[4])
	if err != nil {
		return d, 0, err
	}
	m, replays, err := readLetter(rest, key, n[2])
	d = bus.DeadLetter{Topic: topic, Message: m, Reason: reason, Attempts: int(n[0]), BuriedAt: fromMicro(n[1])}
	return d, replays, err
}

// The layout of a mailbox's state, as scripts/shared/box.lua packs it.
const (
	boxBytes = 52
	boxOwner = 12 // how many bytes at the beginning name the holder
	boxCount = 32 // the offset of the number of messages
	boxSince = 44 // the offset of the time at which the first message was published
	boxFree  = "------------"
)

// readBox reads the packed state of a mailbox: whether it is leased, how many messages it has, and
// when the first of them was published.
func readBox(packed string) (leased bool, count int, since int64, err error) {
	if len(packed) != boxBytes {
		return false, 0, 0, errMalformed
	}
	b := []byte(packed)
	count = int(binary.BigEndian.Uint32(b[boxCount:]))
	return packed[:boxOwner] != boxFree, count, int64(binary.BigEndian.Uint64(b[boxSince:])), nil
}

func toMicro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(1, t.UnixMicro())
}

func fromMicro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

// A reply is the result of a script. Its methods never panic: a value of another type
// counts as empty, because somebody else may have written to Redis.
type reply struct{ v any }

func (r reply) list() []any {
	list, _ := r.v.([]any)
	return list
}

func (r reply) at(i int) reply {
	if list := r.list(); i < len(list) {
		return reply{list[i]}
	}
	return reply{}
}

func (r reply) text() string {
	s, _ := r.v.(string)
	return s
}

func (r reply) number() int64 {
	switch v := r.v.(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64) // a missing number is 0
		return n
	}
	return 0
}

// letters reads messages with consecutive numbers.
func (r reply) letters(key string, first int64) ([]bus.Message, error) {
	var page []bus.Message
	for i, v := range r.list() {
		m, _, err := readLetter(reply{v}.text(), key, first+int64(i))
		if err != nil {
			return nil, fmt.Errorf("letter %d of mailbox: %w", first+int64(i), err)
		}
		page = append(page, m)
	}
	return page, nil
}
