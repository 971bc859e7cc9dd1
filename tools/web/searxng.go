package web

import (
	"context"
	"net/http"
	"net/url"
)

// searxng is a SearXNG server, which the operator runs or chooses. It has no key of
// its own; one that is set is for what stands before it.
type searxng struct {
	endpoint
	key string
}

func (s searxng) search(ctx context.Context, query string, _ int) ([]hit, error) {
	header := http.Header{}
	if s.key != "" {
		header.Set("Authorization", "Bearer "+s.key)
	}
	return s.found(ctx, http.MethodGet, "/search?"+url.Values{"q": {query}, "format": {"json"}}.Encode(), header, nil)
}
