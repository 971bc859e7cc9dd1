package sqlbook

import (
	"context"
	"maps"

	"parley/channels"
)

type tally struct {
	channel string
	n       int
}

// UnknownSends counts the messages of each channel of which nobody can tell
// whether they were sent. Channels without any are missing.
func (b *Book) UnknownSends(ctx context.Context) (map[string]int, error) {
	counts, err := list(ctx, b.db.Read, func(scan func(...any) error) (t tally, err error) {
		err = scan(&t.channel, &t.n)
		untext(&t.channel)
		return t, err
	}, `SELECT channel, count(DISTINCT send) FROM parts JOIN sends ON sends.id = send WHERE state = '`+channels.Unsure+`' GROUP BY channel`)
	if err != nil {
		return nil, err
	}
	return maps.Collect(func(yield func(string, int) bool) {
		for _, t := range counts {
			if !yield(t.channel, t.n) {
				return
			}
		}
	}), nil
}
