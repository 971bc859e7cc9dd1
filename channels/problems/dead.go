package problems

import (
	"context"
	"fmt"
	"strings"

	"parley/bus"
)

// A DeadLetterBus is a bus whose dead letters are counted.
type DeadLetterBus interface {
	bus.Inspector
	bus.DeadLetters
}

// DeadLetters returns the Source that watches for messages that were given up. Messages that the watch itself has
// sent do not count: otherwise, if no message reaches the owners' chat, each notice would become a dead letter that
// causes another notice.
func DeadLetters(b DeadLetterBus, judges func() bool) Source {
	const id = "dead_letters"
	d := &deadLetterCounter{bus: b, counted: map[bus.Topic]deadCount{}}
	return Source{
		ID: id, IsResponsible: judges,
		FindConcerns: func(ctx context.Context, _ map[string]bool) ([]Concern, error) {
			n, err := d.count(ctx)
			if err != nil || n == 0 {
				return nil, err
			}
			return []Concern{{ID: id, Count: n, Text: fmt.Sprintf(
				textGivenUp, n)}}, nil
		},
		EndText: func(string) string { return textNoneGivenUp },
	}
}

// A deadLetterCounter counts dead letters, except for those that the watch itself has sent. To find those, it has
// to list a topic's dead letters, which is slow, so it does that only when their number has changed.
type deadLetterCounter struct {
	bus     DeadLetterBus
	counted map[bus.Topic]deadCount
}

type deadCount struct{ all, ownNotices int }

func (d *deadLetterCounter) count(ctx context.Context) (n int, err error) {
	topics, err := d.bus.Topics(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for dead letters: %w", err)
	}
	for _, topic := range topics {
		depth, err := d.bus.Depth(ctx, topic)
		if err != nil {
			return 0, fmt.Errorf("look for dead letters: %w", err)
		}
		c := d.counted[topic]
		if depth.Dead != c.all && strings.HasPrefix(string(topic), string(bus.OutboundTopic(""))) {
			if c.ownNotices, err = d.countTold(ctx, topic); err != nil {
				return 0, err
			}
		}
		c.all = depth.Dead
		d.counted[topic] = c
		n += max(0, c.all-c.ownNotices)
	}
	return n, nil
}

// countTold counts a topic's dead letters that the watch itself has sent.
func (d *deadLetterCounter) countTold(ctx context.Context, topic bus.Topic) (n int, err error) {
	const page = 100
	for after, more := "", true; more; {
		letters, err := d.bus.DeadLetters(ctx, topic, after, page)
		if err != nil {
			return 0, fmt.Errorf("look through dead letters: %w", err)
		}
		for _, l := range letters {
			after = l.Message.ID
			if isFromWatch(after) {
				n++
			}
		}
		more = len(letters) == page
	}
	return n, nil
}
