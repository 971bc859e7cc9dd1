package migrate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"strconv"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/sqlitebus"
)

// ErrDiffers says that the messages in the new bus differ from those in the old one.
var ErrDiffers = errors.New("the copy differs")

// Mail counts what was copied from a bus.
type Mail struct {
	Messages  int64 `json:"messages"`
	Mailboxes int   `json:"mailboxes"`
	Dead      int64 `json:"dead_letters"`
	Known     int64 `json:"known_ids"` // ids of recently published messages, which are refused if they arrive again
	Pauses    int   `json:"pauses"`
}

// knownAtOnce is how many ids of known messages, or how many dead letters, are copied or read in
// one request.
const knownAtOnce = 500

// copyBus copies what is in the bus: waiting messages, dead letters, the ids of recently published messages, and
// pauses of topics. Each step can be repeated after a crash, because the new bus recognizes what it has received
// under this migration's id.
//
// The new bus starts counting its fences above every fence that a log or the old bus has seen. Otherwise the logs
// would refuse its first leases as outdated.
func (m *migration) copyBus(ctx context.Context) error {
	logs := m.from.store
	if logs == nil {
		logs = m.to.store // an earlier migration has copied them
	}
	fence, err := logs.Fence(ctx)
	if err != nil {
		return err
	}
	if err := m.intake.Begin(ctx, max(fence, m.from.bus.Highest())); err != nil {
		return err
	}
	all, err := m.from.bus.Count(ctx)
	if err != nil {
		return err
	}
	report := m.progressOf(Post)
	report(0, 2*all)
	was := newChecksum()
	for l, err := range m.from.bus.Messages(ctx) {
		if err == nil {
			report(was.n, 2*all)
			was.add(l.Topic, l.Message, l.Attempts, l.Replays, "")
			m.Point("message")
			err = m.intake.AddMessage(ctx, redisbus.StoredMessage(l))
		}
		if err != nil {
			return err
		}
	}
	m.Point("before the dead letters")
	for l, err := range m.from.bus.Dead(ctx) {
		if err == nil {
			m.report.Mail.Dead++
			report(was.n, 2*all)
			was.add("dead/"+l.Topic, l.Message, l.Attempts, 0, l.Reason+l.BuriedAt.String())
			err = m.intake.AddDead(ctx, redisbus.StoredMessage(l))
		}
		if err != nil {
			return err
		}
	}
	m.Point("before the known ids")
	if err := m.copyKnownIDs(ctx); err != nil {
		return err
	}
	if err := m.copyPauses(ctx); err != nil {
		return err
	}
	if err := m.intake.AwaitDurable(ctx); err != nil {
		return err
	}
	m.report.Mail.Messages, m.report.Mail.Mailboxes = was.n-m.report.Mail.Dead, was.boxes
	m.Point("before the mail is compared")
	return m.compare(ctx, was)
}

// copyKnownIDs copies the ids of recently published messages, so that a message that a platform
// delivers again is not answered twice.
func (m *migration) copyKnownIDs(ctx context.Context) error {
	var last sqlitebus.KnownID
	var ids []string
	flush := func() error {
		if len(ids) == 0 {
			return nil
		}
		m.report.Mail.Known += int64(len(ids))
		err := m.intake.AddKnown(ctx, last.Topic, last.Day, ids)
		ids = ids[:0]
		return err
	}
	for k, err := range m.from.bus.Known(ctx) {
		if err == nil && (k.Topic != last.Topic || k.Day != last.Day || len(ids) == knownAtOnce) {
			err = flush()
		}
		if err != nil {
			return err
		}
		last, ids = k, append(ids, k.ID)
	}
	return flush()
}

// copyPauses copies the pauses of topics, during which nothing is sent, that are not over yet.
func (m *migration) copyPauses(ctx context.Context) error {
	pauses, err := m.from.bus.Pauses(ctx)
	if err != nil {
		return err
	}
	for topic, until := range pauses {
		left := time.Until(until)
		if left <= 0 {
			continue
		}
		m.report.Mail.Pauses++
		if err := m.to.bus.Pause(ctx, topic, left); err != nil {
			return err
		}
	}
	return nil
}

// compare reads the messages in the new bus and returns ErrDiffers if their checksum isn't was, the checksum of the
// copied messages.
func (m *migration) compare(ctx context.Context, was *checksum) error {
	is, report := newChecksum(), m.progressOf(Post)
	is.seed = was.seed
	for l, err := range m.intake.Messages(ctx) {
		if err != nil {
			return err
		}
		report(was.n+is.n, 2*was.n)
		is.add(l.Topic, l.Message, l.Attempts, l.Replays, "")
	}
	topics, err := m.to.bus.Topics(ctx)
	if err != nil {
		return err
	}
	for _, topic := range topics {
		for after := ""; ; {
			page, err := m.to.bus.DeadLetters(ctx, topic, after, knownAtOnce)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				break
			}
			for _, d := range page {
				report(was.n+is.n, 2*was.n)
				is.add("dead/"+topic, d.Message, d.Attempts, 0, d.Reason+d.BuriedAt.String())
				after = d.Message.ID
			}
		}
	}
	if is.n != was.n || is.total != was.total {
		return fmt.Errorf("%w: %d messages and dead letters were copied, but %d arrived", ErrDiffers, was.n, is.n)
	}
	m.Log.Info("the mail is taken", slog.Int64("messages", m.report.Mail.Messages), slog.Int64("dead_letters", m.report.Mail.Dead),
		slog.Int64("known_ids", m.report.Mail.Known))
	return nil
}

// A checksum is computed from messages, each with its position in its mailbox. It adds up the
// messages' hashes, so it doesn't depend on the order of the mailboxes.
type checksum struct {
	seed   maphash.Seed
	places map[bus.Topic]map[string]uint64
	n      int64
	boxes  int
	total  uint64
}

func newChecksum() *checksum {
	return &checksum{seed: maphash.MakeSeed(), places: map[bus.Topic]map[string]uint64{}}
}

func (t *checksum) add(topic bus.Topic, m bus.Message, attempts, replays int, more string) {
	boxes := t.places[topic]
	if boxes == nil {
		boxes = map[string]uint64{}
		t.places[topic] = boxes
	}
	place := boxes[m.Key]
	boxes[m.Key]++
	switch {
	case more != "": // a dead letter has its own number of attempts
	case place == 0:
		t.boxes++
	default:
		attempts = 0 // a mailbox only stores the attempts of its first message
	}
	numbers := []byte(strconv.FormatBool(m.Urgent))
	for _, n := range []int64{int64(place), m.NotBefore.UnixMicro(), int64(attempts), int64(replays)} {
		numbers = binary.BigEndian.AppendUint64(numbers, uint64(n))
	}
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, text := range [][]byte{[]byte(topic), []byte(m.Key), []byte(m.ID), numbers, []byte(more), m.Body} {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text)))) // never fails
		_, _ = h.Write(text)
	}
	t.n++
	t.total += h.Sum64()
}
