package web

import (
	"context"
	"net/http"
	"net/url"
)

// searxng asks a SearXNG server, which the operator runs or chooses. The server has no key of its
// own; a key that is set is for a proxy in front of it.
type searxng struct {
	endpoint
	key string
}

func (s searxng) search(ctx context.Context, query string, _ int) ([]hit, error) {
	header := http.Header{}
	if s.key != "" {
		header.Set("Authorization", "Bearer "+s.key)
	}
	return s.queryResults(ctx, http.MethodGet, "/search?"+url.Values{"q": {query}, "format": {"json"}}.Encode(), header, nil)
}
