package recall

import (
	"context"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/sessions/search"
)

// linksWithin bounds how long one search asks platforms for what the addresses of messages need.
const linksWithin = time.Second

// Platforms know at which addresses they show messages.
type Platforms interface {
	// Link is as in channels.Linker.
	Link(ctx context.Context, at bus.Address, message string) (string, error)
}

// Linked is an index whose hits have their links.
type Linked struct {
	search.Index
	Platforms Platforms
}

// Search finds entries; see [search.Index]. A hit whose link is not known now has none.
func (l Linked) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	hits, err := l.Index.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, linksWithin)
	defer cancel()
	for i, h := range hits {
		key, err := sessions.ParseKey(h.Session)
		if err != nil || h.Message == "" {
			continue
		}
		at := bus.Address{Channel: key.Channel, Chat: key.Chat, Thread: key.Thread}
		if link, err := l.Platforms.Link(asking, at, h.Message); err == nil {
			hits[i].Link = link
		}
	}
	return hits, nil
}
