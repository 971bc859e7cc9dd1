package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// brave sends queries to the Brave Search API.
type brave struct {
	endpoint
	key string
}

func (b brave) search(ctx context.Context, query string, most int) ([]hit, error) {
	var answer struct {
		Web struct {
			Results []struct{ Title, URL, Description string }
		}
	}
	path := "/res/v1/web/search?" + url.Values{"q": {query}, "count": {strconv.Itoa(most)}}.Encode()
	if err := b.query(ctx, http.MethodGet, path, http.Header{"X-Subscription-Token": {b.key}}, nil, &answer); err != nil {
		return nil, err
	}
	var hits []hit
	for _, r := range answer.Web.Results {
		hits = append(hits, hit{r.Title, r.URL, r.Description})
	}
	return hits, nil
}
