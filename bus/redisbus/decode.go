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

// readMessage reads a message as shared/message.lua writes it, and returns how many times it
// was replayed.
func readMessage(text, key string, seq int64) (m bus.Message, replays int64, err error) {
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
	m, replays, err := readMessage(rest, key, n[2])
	d = bus.DeadLetter{Topic: topic, Message: m, Reason: reason, Attempts: int(n[0]), BuriedAt: fromMicro(n[1])}
	return d, replays, err
}

// This is the layout of a mailbox's state, as scripts/shared/box.lua packs it.
const (
	boxBytes = 52
	boxOwner = 12 // how many bytes at the beginning name the holder
	boxCount = 32 // the offset of the number of messages
	boxSince = 44 // the offset of the time at which the first message was published
	boxFree  = "------------"
)

// readBox reads the packed state of a mailbox: who has leased it ("" if nobody has), how many messages it has, and
// when the first of them was published.
func readBox(packed string) (holder string, count int, since int64, err error) {
	if len(packed) != boxBytes {
		return "", 0, 0, errMalformed
	}
	b := []byte(packed)
	count = int(binary.BigEndian.Uint32(b[boxCount:]))
	if holder = packed[:boxOwner]; holder == boxFree {
		holder = ""
	}
	return holder, count, int64(binary.BigEndian.Uint64(b[boxSince:])), nil
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

// messages reads messages with consecutive numbers.
func (r reply) messages(key string, first int64) ([]bus.Message, error) {
	var page []bus.Message
	for i, v := range r.list() {
		m, _, err := readMessage(reply{v}.text(), key, first+int64(i))
		if err != nil {
			return nil, fmt.Errorf("message %d of mailbox: %w", first+int64(i), err)
		}
		page = append(page, m)
	}
	return page, nil
}
