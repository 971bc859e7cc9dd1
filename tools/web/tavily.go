package web

import (
	"context"
	"net/http"
)

// tavily sends queries to the Tavily Search API.
type tavily struct {
	endpoint
	key string
}

func (t tavily) search(ctx context.Context, query string, most int) ([]hit, error) {
	asked := struct {
		Query      string `json:"query"`
		MaxResults int    `json:"max_results"`
	}{query, most}
	return t.queryResults(ctx, http.MethodPost, "/search", http.Header{"Authorization": {"Bearer " + t.key}}, asked)
}

// queryResults reads hits in Tavily's format, which SearXNG shares.
func (e endpoint) queryResults(ctx context.Context, method, path string, header http.Header, body any) ([]hit, error) {
	var answer struct {
		Results []struct{ Title, URL, Content string }
	}
	if err := e.query(ctx, method, path, header, body, &answer); err != nil {
		return nil, err
	}
	var hits []hit
	for _, r := range answer.Results {
		hits = append(hits, hit{r.Title, r.URL, r.Content})
	}
	return hits, nil
}
