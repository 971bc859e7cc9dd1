package redisbus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/bus"
)

// errLetter says that something in Redis is not as this package writes it.
var errLetter = errors.New("not as it was written")

// fields cuts n numbers off the front of text, each followed by a space.
func fields(text string, n int) (numbers []int64, rest string, err error) {
	for range n {
		field, after, ok := strings.Cut(text, " ")
		if !ok {
			return nil, "", errLetter
		}
		v, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return nil, "", errLetter
		}
		numbers, text = append(numbers, v), after
	}
	return numbers, text, nil
}

// part cuts n bytes off the front of text.
func part(text string, n int64) (part, rest string, err error) {
	if n < 0 || n > int64(len(text)) {
		return "", "", errLetter
	}
	return text[:n], text[n:], nil
}

// readLetter reads a letter as the scripts write it; the second result is how
// often it was replayed.
func readLetter(text, key string, seq int64) (m bus.Message, replays int64, err error) {
	n, rest, err := fields(text, 5)
	if err != nil {
		return m, 0, err
	}
	id, body, err := part(rest, n[4])
	if err != nil {
		return m, 0, err
	}
	m = bus.Message{ID: id, Key: key, Seq: seq, NotBefore: fromMicro(n[0]), Urgent: n[2] == 1, Body: []byte(body)}
	return m, n[3], nil
}

// readGrave reads a dead letter.
func readGrave(text string, topic bus.Topic) (d bus.DeadLetter, replays int64, err error) {
	n, rest, err := fields(text, 5)
	if err != nil {
		return d, 0, err
	}
	key, rest, err := part(rest, n[3])
	if err != nil {
		return d, 0, err
	}
	reason, rest, err := part(rest, n[4])
	if err != nil {
		return d, 0, err
	}
	m, replays, err := readLetter(rest, key, n[2])
	d = bus.DeadLetter{Topic: topic, Message: m, Reason: reason, Attempts: int(n[0]), BuriedAt: fromMicro(n[1])}
	return d, replays, err
}

// The state of a mailbox, as scripts/shared/box.lua packs it.
const (
	boxBytes = 52
	boxOwner = 12 // bytes, the first
	boxCount = 32 // where the number of letters is
	boxSince = 44 // where the time of the first is
	boxFree  = "------------"
)

// readBox says of a mailbox whether it is leased, how many letters it holds, and
// when the first was published.
func readBox(packed string) (leased bool, count int, since int64, err error) {
	if len(packed) != boxBytes {
		return false, 0, 0, errLetter
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

// A reply is what a script returned, read with care: what stands in Redis may
// not come from us.
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
		n, _ := strconv.ParseInt(v, 10, 64) // 0 is what a missing number is
		return n
	}
	return 0
}

// letters reads letters of consecutive numbers.
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
