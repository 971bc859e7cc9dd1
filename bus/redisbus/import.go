package redisbus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus"
	"parley/bus/redisbus/server"
)

// These are the errors of an import.
var (
	// ErrOccupied says that Redis already stores a bus under this prefix.
	ErrOccupied = errors.New("this Redis already has a bus under this prefix")
	// ErrServed says that other processes have the bus open.
	ErrServed = errors.New("other processes have the bus open")
)

// A StoredMessage is a message stored by another bus: one that waits in a mailbox, or a dead
// letter.
type StoredMessage struct {
	Topic    bus.Topic
	Message  bus.Message
	Replays  int       // how many times it was a dead letter before
	Attempts int       // for the first message in a mailbox: how many times the mailbox was claimed; for a dead letter: how many times before it was given up
	Due      time.Time // for the first message in a mailbox: until when the mailbox waits
	Reason   string    // for a dead letter: why it was given up
	BuriedAt time.Time // for a dead letter: when it was given up
}

// An Importer copies the content of another bus into this one, for a migration, all of it under one
// id. Each of its methods may be repeated with what was stored before, also in another process: a
// migration that was interrupted begins again from the first message.
type Importer struct {
	bus                              *Bus
	id                               string
	begin, addMessage, addDead, peek *redis.Script
}

// NewImporter checks whether b can receive the content of another bus in the migration with that id,
// and changes nothing. It returns ErrServed while other processes have b open, and ErrOccupied if b
// stores anything that did not come in under this id.
func NewImporter(ctx context.Context, b *Bus, id string) (*Importer, error) {
	in := &Importer{bus: b, id: id}
	for name, script := range map[string]**redis.Script{
		"begin_import": &in.begin, "import_message": &in.addMessage, "import_dead": &in.addDead, "peek": &in.peek,
	} {
		text, err := scriptSource(name)
		if err != nil {
			return nil, fmt.Errorf("prepare an import: %w", err)
		}
		*script = redis.NewScript(text)
	}
	others, err := b.AwaitOthersGone(ctx)
	if err == nil && others > 0 {
		err = fmt.Errorf("%w: %d of them", ErrServed, others)
	}
	if err == nil {
		err = in.checkEmpty(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare an import: %w", err)
	}
	return in, nil
}

// moved returns the name of a hash with the id of the import, and the number of the last message that it stored.
func (k keys) moved() string { return k.prefix + "moved" }

// checkEmpty returns ErrOccupied if Redis has keys of the bus other than those that opening
// it makes, unless an earlier run of this import has made them.
func (in *Importer) checkEmpty(ctx context.Context) error {
	b := in.bus
	id, err := b.client.HGet(ctx, b.keys.moved(), "id").Result()
	if err == nil && id == in.id {
		return nil
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("look for an earlier import: %w", err)
	}
	// The keys that a bus makes when it is opened.
	own := []string{b.keys.clock(), b.keys.contact(), b.keys.hold(repairName), b.keys.waitingProcesses(repairName), b.keys.nudge(b.self), b.keys.shards()}
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

// Begin stores the import's id, so that no other import can begin, and raises the bus's clock so
// that the fences that it gives from now on are above highest, the other bus's highest.
func (in *Importer) Begin(ctx context.Context, highest int64) error {
	k := in.bus.keys
	id, err := in.begin.Run(ctx, in.bus.client, []string{k.moved(), k.clock()}, in.id, highest).Text()
	if err == nil && id != in.id {
		err = ErrOccupied
	}
	if err != nil {
		return fmt.Errorf("begin to import: %w", err)
	}
	return nil
}

// AddMessage puts a waiting message at the end of its mailbox. The caller has to pass all
// messages in the order of their numbers on the other bus, also when it begins again: the
// number of the last one tells which were stored already.
func (in *Importer) AddMessage(ctx context.Context, l StoredMessage) error {
	b, m := in.bus, l.Message
	k := b.keys.topic(l.Topic)
	for {
		day := b.serverDay.Load()
		keys := append(b.acceptKeys(&k, m.Key, m.ID, day), b.keys.moved())
		answer, err := in.addMessage.Run(ctx, b.client, keys, string(l.Topic), m.Key, m.ID, boolArg(m.Urgent), toMicro(m.NotBefore), day,
			b.keys.notes(""), l.Replays, l.Attempts, toMicro(l.Due), m.Seq, m.Body).Slice()
		if err != nil {
			return fmt.Errorf("import %s: %w", m.ID, err)
		}
		r := reply{answer}
		switch r.at(0).text() {
		case answerDay:
			b.serverDay.Store(r.at(1).number())
			continue
		case answerKnown:
			return fmt.Errorf("import %s: %w: the id is known", m.ID, ErrOccupied)
		}
		return nil
	}
}

// AddDead stores a dead letter. Dead letters are listed in the order of the calls.
func (in *Importer) AddDead(ctx context.Context, l StoredMessage) error {
	m := l.Message
	k := in.bus.keys.topic(l.Topic)
	err := in.addDead.Run(ctx, in.bus.client, []string{in.bus.keys.clock(), in.bus.keys.topics(), k.dead, k.graves},
		string(l.Topic), m.Key, m.ID, l.Reason, l.Attempts, toMicro(l.BuriedAt), boolArg(m.Urgent), toMicro(m.NotBefore),
		l.Replays, m.Seq, m.Body).Err()
	if err != nil {
		return fmt.Errorf("import dead letter %s: %w", m.ID, err)
	}
	return nil
}

// AddKnown records that messages with these ids were published on a day, counted from 1970
// in UTC. It must come after AddMessage, which would refuse a message whose id is known.
func (in *Importer) AddKnown(ctx context.Context, topic bus.Topic, day int64, ids []string) error {
	return in.bus.AddKnownIDs(ctx, KnownIDs{topic, day, ids})
}

// Messages reads the waiting messages of all mailboxes, one mailbox after the other, each in
// its order.
func (in *Importer) Messages(ctx context.Context) iter.Seq2[StoredMessage, error] {
	return func(yield func(StoredMessage, error) bool) {
		topics, err := in.bus.Topics(ctx)
		if err != nil {
			yield(StoredMessage{}, err)
			return
		}
		for _, topic := range topics {
			k := in.bus.keys.topic(topic)
			known := map[string]bool{} // HSCAN may return a mailbox twice
			for page, err := range in.bus.mailboxPages(ctx, &k) {
				if err != nil {
					yield(StoredMessage{}, fmt.Errorf("read mailboxes: %w", err))
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

// readMailbox yields the messages of one mailbox. It returns false if the reader wants no
// more.
func (in *Importer) readMailbox(ctx context.Context, k *topicKeys, key string, yield func(StoredMessage, error) bool) bool {
	for place := int64(0); ; {
		answer, err := in.peek.Run(ctx, in.bus.client, []string{k.state, k.heads, k.mail(key)}, key, place).Slice()
		if err != nil {
			yield(StoredMessage{}, fmt.Errorf("read mailbox: %w", err))
			return false
		}
		r := reply{answer}
		page := r.at(2).list()
		if len(page) == 0 {
			return true
		}
		for _, text := range page {
			m, replays, err := readMessage(reply{text}.text(), key, r.at(1).number()+place)
			l := StoredMessage{Topic: k.name, Message: m, Replays: int(replays)}
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

// AwaitDurable waits until the server says that its append-only file is on disk. If the server cannot
// say so, because it is too old or has no such file, or does not say so in 2.5 seconds, AwaitDurable waits for another
// 2 seconds, which should be enough, and returns nil.
func (in *Importer) AwaitDurable(ctx context.Context) error {
	synced, err := in.bus.client.Do(ctx, "WAITAOF", 1, 0, 2500).Slice()
	if err == nil && len(synced) > 0 && (reply{synced[0]}).number() > 0 {
		return nil
	}
	if err != nil && !server.IsAnswer(err) {
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
