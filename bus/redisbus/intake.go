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

// The errors of NewIntake and Begin.
var (
	// ErrOccupied says that Redis already stores a bus under this prefix.
	ErrOccupied = errors.New("redis keeps a bus under this prefix")
	// ErrServed says that other processes have the bus open.
	ErrServed = errors.New("other processes have the bus open")
)

// A Letter is a message stored by another bus: one that waits in a mailbox, or a dead
// letter.
type Letter struct {
	Topic    bus.Topic
	Message  bus.Message
	Replays  int       // how many times it was a dead letter before
	Attempts int       // for the first message in a mailbox: how many times the mailbox was claimed; for a dead letter: how many times before it was given up
	Due      time.Time // for the first message in a mailbox: until when the mailbox waits
	Reason   string    // for a dead letter: why it was given up
	BuriedAt time.Time // for a dead letter: when it was given up
}

// An Intake copies the content of another bus into this one, for a migration, all of it under one
// id. Each of its methods may be repeated with what was stored before, also in another process: a
// migration that was interrupted begins again from the first letter.
type Intake struct {
	bus                               *Bus
	id                                string
	begin, takeLetter, takeDead, peek *redis.Script
}

// NewIntake checks whether b can receive the content of another bus in the migration with that id,
// and changes nothing. It returns ErrServed while other processes have b open, and ErrOccupied if b
// stores anything that did not come in under this id.
func NewIntake(ctx context.Context, b *Bus, id string) (*Intake, error) {
	in := &Intake{bus: b, id: id}
	for name, script := range map[string]**redis.Script{
		"begin_intake": &in.begin, "take_letter": &in.takeLetter, "take_dead": &in.takeDead, "peek": &in.peek,
	} {
		text, err := scriptSource(name)
		if err != nil {
			return nil, fmt.Errorf("take in: %w", err)
		}
		*script = redis.NewScript(text)
	}
	others, err := b.awaitOthersGone(ctx)
	if err == nil && others > 0 {
		err = fmt.Errorf("%w: %d of them", ErrServed, others)
	}
	if err == nil {
		err = in.checkEmpty(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("take in: %w", err)
	}
	return in, nil
}

// prefixPattern returns the Redis pattern of names that begin with a prefix.
func prefixPattern(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(prefix) + "*"
}

// goneWithin is how long Redis may take to notice that a process has closed its connection.
const goneWithin = 2 * time.Second

// awaitOthersGone returns how many other processes have the bus open, as soon as there are
// none or Redis must have noticed those that have just ended.
func (b *Bus) awaitOthersGone(ctx context.Context) (others int, err error) {
	for begun := time.Now(); ; {
		others, err = b.otherProcesses(ctx)
		if err != nil || others == 0 || time.Since(begun) > goneWithin {
			return others, err
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// otherProcesses returns how many other processes have the bus open.
func (b *Bus) otherProcesses(ctx context.Context) (int, error) {
	all, err := b.Processes(ctx)
	return len(all) - 1, err
}

// Processes implements bus.Roster: it lists the channels on which processes listen, of
// which each has its own.
func (b *Bus) Processes(ctx context.Context) ([]string, error) {
	listening, err := b.client.PubSubChannels(ctx, prefixPattern(b.keys.notes(""))).Result()
	if err != nil {
		return nil, fmt.Errorf("look for other processes: %w", err)
	}
	names := []string{b.self}
	for _, channel := range listening {
		if name := strings.TrimPrefix(channel, b.keys.notes("")); name != b.self {
			names = append(names, name)
		}
	}
	return names, nil
}

func (k keys) intake() string { return k.prefix + "moved" } // hash: the id of the intake, and the number of the last letter that it stored

// checkEmpty returns ErrOccupied if Redis has keys of the bus other than those that opening
// it makes, unless an earlier run of this intake has made them.
func (in *Intake) checkEmpty(ctx context.Context) error {
	b := in.bus
	id, err := b.client.HGet(ctx, b.keys.intake(), "id").Result()
	if err == nil && id == in.id {
		return nil
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("look for an earlier intake: %w", err)
	}
	// The keys that a bus makes when it is opened.
	own := []string{b.keys.clock(), b.keys.contact(), b.keys.hold(repairName), b.keys.nudge(b.self)}
	found := b.client.Scan(ctx, 0, prefixPattern(b.keys.prefix), 1000).Iterator()
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

// Begin stores the intake's id, so that no other intake can begin, and raises the bus's clock so
// that the fences that it gives from now on are above highest, the other bus's highest.
func (in *Intake) Begin(ctx context.Context, highest int64) error {
	k := in.bus.keys
	id, err := in.begin.Run(ctx, in.bus.client, []string{k.intake(), k.clock()}, in.id, highest).Text()
	if err == nil && id != in.id {
		err = ErrOccupied
	}
	if err != nil {
		return fmt.Errorf("begin to take in: %w", err)
	}
	return nil
}

// TakeLetter puts a waiting message at the end of its mailbox. The caller has to pass all
// messages in the order of their numbers on the other bus, also when it begins again: the
// number of the last one tells which were stored already.
func (in *Intake) TakeLetter(ctx context.Context, l Letter) error {
	b, m := in.bus, l.Message
	k := b.keys.topic(l.Topic)
	for {
		day := b.day.Load()
		keys := append(b.acceptKeys(&k, m.Key, m.ID, day), b.keys.intake())
		answer, err := in.takeLetter.Run(ctx, b.client, keys, string(l.Topic), m.Key, m.ID, boolArg(m.Urgent), toMicro(m.NotBefore), day,
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

// TakeDead stores a dead letter. Dead letters are listed in the order of the calls.
func (in *Intake) TakeDead(ctx context.Context, l Letter) error {
	m := l.Message
	k := in.bus.keys.topic(l.Topic)
	err := in.takeDead.Run(ctx, in.bus.client, []string{in.bus.keys.clock(), in.bus.keys.topics(), k.dead, k.graves},
		string(l.Topic), m.Key, m.ID, l.Reason, l.Attempts, toMicro(l.BuriedAt), boolArg(m.Urgent), toMicro(m.NotBefore),
		l.Replays, m.Seq, m.Body).Err()
	if err != nil {
		return fmt.Errorf("take in dead letter %s: %w", m.ID, err)
	}
	return nil
}

// TakeKnown records that messages with these ids were published on a day, counted from 1970
// in UTC. It must come after TakeLetter, which would refuse a message whose id is known.
func (in *Intake) TakeKnown(ctx context.Context, topic bus.Topic, day int64, ids []string) error {
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

// Letters reads the waiting messages of all mailboxes, one mailbox after the other, each in
// its order.
func (in *Intake) Letters(ctx context.Context) iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		topics, err := in.bus.Topics(ctx)
		if err != nil {
			yield(Letter{}, err)
			return
		}
		for _, topic := range topics {
			k := in.bus.keys.topic(topic)
			known := map[string]bool{} // HSCAN may return a mailbox twice
			for page, err := range in.bus.mailboxPages(ctx, &k) {
				if err != nil {
					yield(Letter{}, fmt.Errorf("read mailboxes: %w", err))
					return
				}
				for pair := range slices.Chunk(page, 2) {
					if key := pair[0]; !known[key] {
						known[key] = true
						if !in.readMailbox(ctx, &k, key, yield) {
							return
						}
					}
				}
			}
		}
	}
}

// readMailbox yields the letters of one mailbox. It returns false if the reader wants no
// more.
func (in *Intake) readMailbox(ctx context.Context, k *topicKeys, key string, yield func(Letter, error) bool) bool {
	for place := int64(0); ; {
		answer, err := in.peek.Run(ctx, in.bus.client, []string{k.state, k.heads, k.mail(key)}, key, place).Slice()
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

// AwaitDurable waits until the server has written its append-only file to disk, if it has one.
// For a server that cannot be asked it waits as long as that should take.
func (in *Intake) AwaitDurable(ctx context.Context) error {
	synced, err := in.bus.client.Do(ctx, "WAITAOF", 1, 0, 2500).Slice()
	if err == nil && len(synced) > 0 && (reply{synced[0]}).number() > 0 {
		return nil
	}
	if err != nil && !isServerAnswer(err) {
		return fmt.Errorf("wait for redis to write: %w", err)
	}
	// Redis before 7.2 does not know WAITAOF. By default it writes once a second.
	select {
	case <-time.After(2 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isServerAnswer reports whether err is an error with which the server has answered, rather
// than a failure to reach the server.
func isServerAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}
