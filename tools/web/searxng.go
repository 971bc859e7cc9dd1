package web

import (
	"context"
	"net/http"
	"net/url"
)

// searxng sends queries to a SearXNG server, which the operator runs or chooses. The server itself
// requires no key; a configured key is for a proxy in front of it.
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
