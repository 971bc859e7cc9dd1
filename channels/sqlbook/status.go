package sqlbook

import (
	"context"
	"maps"

	"parley/channels"
)

// A channelCount is a number of messages of one channel.
type channelCount struct {
	channel string
	n       int
}

// UnknownSends counts, for each channel, the messages about which nobody can tell whether they were
// sent. It leaves out channels without any.
func (b *Book) UnknownSends(ctx context.Context) (map[string]int, error) {
	counts, err := queryAll(ctx, b.db.Read, func(scan func(...any) error) (t channelCount, err error) {
		err = scan(&t.channel, &t.n)
		restoreTexts(&t.channel)
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
