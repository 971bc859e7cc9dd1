package recall

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/bus"
	"parley/sessions"
	"parley/sessions/search"
)

const (
	// linksTimeout limits how long one search asks platforms for links.
	linksTimeout = time.Second
	// maxConcurrentLinks is the number of conversations for which links are requested at the same time.
	maxConcurrentLinks = 4
)

// Platforms provides links to messages on chat platforms.
type Platforms interface {
	// Link is as in channels.Linker.
	Link(ctx context.Context, at bus.Address, message string) (string, error)
}

// LinkedIndex is an index whose hits have their links.
type LinkedIndex struct {
	search.Index
	Platforms Platforms
}

// Search finds entries; see [search.Index]. A hit whose link is not known now has none.
func (l LinkedIndex) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	hits, err := l.Index.Search(ctx, q)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, linksTimeout)
	defer cancel()
	of := map[string][]int{} // of each conversation one after the other, because the first one tells the platform's client what the others need
	for i, h := range hits {
		of[h.Session] = append(of[h.Session], i)
	}
	var asked errgroup.Group
	asked.SetLimit(maxConcurrentLinks)
	for _, some := range of {
		asked.Go(func() error {
			for _, i := range some {
				hits[i].Link = l.linkOf(asking, hits[i])
			}
			return nil
		})
	}
	return hits, asked.Wait()
}

// linkOf returns the link of a hit; "" if it is not known now.
func (l LinkedIndex) linkOf(ctx context.Context, h search.Hit) string {
	key, err := sessions.ParseKey(h.Session)
	if err != nil || h.Message == "" {
		return ""
	}
	link, err := l.Platforms.Link(ctx, bus.Address{Channel: key.Channel, Chat: key.Chat, Thread: key.Thread}, h.Message)
	if err != nil {
		return ""
	}
	return link
}
