package redisbus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
)

// This file is for who takes to Redis what another bus keeps.

// Errors of an intake.
var (
	// ErrOccupied says that under the prefix a bus is kept already.
	ErrOccupied = errors.New("redis keeps a bus under this prefix")
	// ErrServed says that other processes have the bus open.
	ErrServed = errors.New("other processes have the bus open")
)

// A Letter is a message that another bus keeps: one that waits, or a dead one.
type Letter struct {
	Topic    bus.Topic
	Message  bus.Message
	Replays  int       // how often it was dead before
	Attempts int       // of one that is first in its mailbox, how often that was claimed
	Due      time.Time // and until when it waits
	Reason   string    // of a dead one
	BuriedAt time.Time
}

// An Intake takes in what another bus keeps, all of it under one id. Each of its
// methods may be called again, in another process too, with what was taken before.
type Intake struct {
	bus                      *Bus
	id                       string
	begin, take, inter, look *redis.Script
}

// NewIntake looks whether everything of another bus can be taken in under an id:
// it gives ErrServed while other processes have the bus open, and ErrOccupied
// where it keeps anything that was not taken in under this id. It changes nothing.
func NewIntake(ctx context.Context, b *Bus, id string) (*Intake, error) {
	in := &Intake{bus: b, id: id}
	for name, script := range map[string]**redis.Script{"begin": &in.begin, "take": &in.take, "inter": &in.inter, "look": &in.look} {
		text, err := source(name)
		if err != nil {
			return nil, fmt.Errorf("take in: %w", err)
		}
		*script = redis.NewScript(text)
	}
	others, err := b.others(ctx)
	if err == nil && others > 0 {
		err = fmt.Errorf("%w: %d of them", ErrServed, others)
	}
	if err == nil {
		err = in.vacant(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("take in: %w", err)
	}
	return in, nil
}

// pattern matches names that begin with a prefix.
func pattern(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(prefix) + "*"
}

// others counts the processes that have the bus open, beside this one: each
// listens on a channel of its own.
func (b *Bus) others(ctx context.Context) (int, error) {
	listening, err := b.client.PubSubChannels(ctx, pattern(b.keys.notes(""))).Result()
	if err != nil {
		return 0, fmt.Errorf("look for other processes: %w", err)
	}
	return len(slices.DeleteFunc(listening, func(name string) bool { return name == b.keys.notes(b.self) })), nil
}

func (k keys) moved() string { return k.prefix + "moved" } // what was taken in from another bus, and up to where

// vacant looks for what a bus leaves behind that was ever used.
func (in *Intake) vacant(ctx context.Context) error {
	b := in.bus
	id, err := b.client.HGet(ctx, b.keys.moved(), "id").Result()
	if err == nil && id == in.id {
		return nil
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("look for an earlier intake: %w", err)
	}
	// What a bus that was just opened has.
	own := []string{b.keys.clock(), b.keys.contact(), b.keys.hold(repairName), b.keys.nudge(b.self)}
	found := b.client.Scan(ctx, 0, pattern(b.keys.prefix), 1000).Iterator()
	for found.Next(ctx) {
		if key := found.Val(); !slices.Contains(own, key) {
			return fmt.Errorf("%w: there is %s", ErrOccupied, key)
		}
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("look for what is kept: %w", err)
	}
	return nil
}

// Begin notes that everything is taken in under the intake's id, and has fences
// go on above highest.
func (in *Intake) Begin(ctx context.Context, highest int64) error {
	k := in.bus.keys
	id, err := in.begin.Run(ctx, in.bus.client, []string{k.moved(), k.clock()}, in.id, highest).Text()
	if err == nil && id != in.id {
		err = ErrOccupied
	}
	if err != nil {
		return fmt.Errorf("begin to take in: %w", err)
	}
	return nil
}

// Take puts a message that waits at the end of its mailbox. All are to be taken
// in the order of their numbers over there, also when it is done again.
func (in *Intake) Take(ctx context.Context, l Letter) error {
	b, m := in.bus, l.Message
	k := b.keys.topic(l.Topic)
	for {
		day := b.day.Load()
		keys := append(b.acceptKeys(&k, m.Key, m.ID, day), b.keys.moved())
		answer, err := in.take.Run(ctx, b.client, keys, string(l.Topic), m.Key, m.ID, flag(m.Urgent), toMicro(m.NotBefore), day,
			b.keys.notes(""), l.Replays, l.Attempts, toMicro(l.Due), m.Seq, m.Body).Slice()
		if err != nil {
			return fmt.Errorf("take in %s: %w", m.ID, err)
		}
		r := reply{answer}
		switch r.at(0).text() {
		case answerDay:
			b.day.Store(r.at(1).number())
			continue
		case answerKnown:
			return fmt.Errorf("take in %s: %w: the id is known", m.ID, ErrOccupied)
		}
		return nil
	}
}

// Inter keeps a dead letter. The order of all is that of the calls.
func (in *Intake) Inter(ctx context.Context, l Letter) error {
	m := l.Message
	k := in.bus.keys.topic(l.Topic)
	err := in.inter.Run(ctx, in.bus.client, []string{in.bus.keys.clock(), in.bus.keys.topics(), k.dead, k.graves},
		string(l.Topic), m.Key, m.ID, l.Reason, l.Attempts, toMicro(l.BuriedAt), flag(m.Urgent), toMicro(m.NotBefore),
		l.Replays, m.Seq, m.Body).Err()
	if err != nil {
		return fmt.Errorf("take in dead letter %s: %w", m.ID, err)
	}
	return nil
}

// Know remembers ids as published on a day, counted from 1970 in UTC. It comes
// after the messages: one whose id is known would not be taken.
func (in *Intake) Know(ctx context.Context, topic bus.Topic, day int64, ids []string) error {
	k := in.bus.keys.topic(topic)
	forget := time.UnixMicro((day + 2) * dayLength).Add(time.Hour)
	pipe := in.bus.client.Pipeline()
	for _, id := range ids {
		seen := k.seen(day, id)
		pipe.SAdd(ctx, seen, id)
		pipe.PExpireAt(ctx, seen, forget)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("take in known ids: %w", err)
	}
	return nil
}

// Letters reads what waits in all mailboxes: one after the other, and within
// each in its order.
func (in *Intake) Letters(ctx context.Context) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		topics, err := in.bus.Topics(ctx)
		if err != nil {
			yield(Letter{}, err)
			return
		}
		for _, topic := range topics {
			k := in.bus.keys.topic(topic)
			known := map[string]bool{} // while reading, one may come twice
			for page, err := range in.bus.boxes(ctx, &k) {
				if err != nil {
					yield(Letter{}, fmt.Errorf("read mailboxes: %w", err))
					return
				}
				for pair := range slices.Chunk(page, 2) {
					if key := pair[0]; !known[key] {
						known[key] = true
						if !in.mailbox(ctx, &k, key, yield) {
							return
						}
					}
				}
			}
		}
	}
}

// mailbox hands out the letters of one mailbox, until yield says that it is enough.
func (in *Intake) mailbox(ctx context.Context, k *topicKeys, key string, yield func(Letter, error) bool) bool {
	for place := int64(0); ; {
		answer, err := in.look.Run(ctx, in.bus.client, []string{k.state, k.heads, k.mail(key)}, key, place).Slice()
		if err != nil {
			yield(Letter{}, fmt.Errorf("read mailbox: %w", err))
			return false
		}
		r := reply{answer}
		page := r.at(2).list()
		if len(page) == 0 {
			return true
		}
		for _, text := range page {
			m, replays, err := readLetter(reply{text}.text(), key, r.at(1).number()+place)
			l := Letter{Topic: k.name, Message: m, Replays: int(replays)}
			if place == 0 {
				l.Attempts = int(r.at(0).number())
			}
			if err != nil {
				err = fmt.Errorf("read mailbox: %w", err)
			}
			if !yield(l, err) || err != nil {
				return false
			}
			place++
		}
	}
}

// Durable waits until the server has written all of it to its disk, if it has an
// append-only file; where it cannot tell, it should have by then.
func (in *Intake) Durable(ctx context.Context) error {
	synced, err := in.bus.client.Do(ctx, "WAITAOF", 1, 0, 2500).Slice()
	if err == nil && len(synced) > 0 && (reply{synced[0]}).number() > 0 {
		return nil
	}
	if err != nil && !refused(err) {
		return fmt.Errorf("wait for redis to write: %w", err)
	}
	// Before 7.2 nobody can ask; once a second is what it promises by default.
	select {
	case <-time.After(2 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refused tells an error that the server gave from one of the way there.
func refused(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}
