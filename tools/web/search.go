package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"parley/tools"
	"parley/tools/target"
)

const (
	defaultHits = 5
	maxHits     = 20
	// maxQuery is the length that the services accept, in characters.
	maxQuery = 400
)

// A search is the tool web_search.
type search struct {
	settings func() Settings
	client   *http.Client
}

type searchArgs struct {
	Query      string `json:"query" jsonschema:"what to look for"`
	NumResults int    `json:"num_results,omitempty" jsonschema:"how many results, 5 by default and 20 at most"`
}

type searchOutput struct {
	Query   string `json:"query"`
	Results []hit  `json:"results"`
}

// An unconfiguredResult is the result of web_search if the operator has configured no service:
// nothing has failed, and trying again would not help.
type unconfiguredResult struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Query   string `json:"query"`
}

func (s *search) search(ctx context.Context, _ tools.Call, args searchArgs) (any, error) {
	query := strings.TrimSpace(args.Query)
	if query == "" || len([]rune(query)) > maxQuery {
		return nil, tools.Errorf(tools.InvalidArgs, "query must have 1 to %d characters: give a few words", maxQuery)
	}
	most := min(args.NumResults, maxHits)
	if most <= 0 {
		most = defaultHits
	}
	service := s.service()
	if service == nil {
		return unconfiguredResult{
			Error: "web search is not configured", Query: query,
			Message: `The operator sets [web] search to "brave" or "tavily" with api_key, or to "searxng" with base_url. Until then answer from what you know, or fetch a page whose URL is known with web_fetch.`,
		}, nil
	}
	hits, err := service.search(ctx, query, most)
	if err != nil {
		return nil, err
	}
	return tools.Untrusted{Value: searchOutput{query, presentHits(hits, most)}}, nil
}

// service returns the configured service; nil if there is none.
func (s *search) service() searcher {
	set := s.settings().Search
	base := func(usual string) endpoint {
		if set.BaseURL != "" {
			usual = set.BaseURL
		}
		return endpoint{client: s.client, base: strings.TrimSuffix(usual, "/"), service: set.Service}
	}
	switch set.Service {
	case "brave":
		return brave{base("https://api.search.brave.com"), set.APIKey}
	case "tavily":
		return tavily{base("https://api.tavily.com"), set.APIKey}
	case "searxng":
		return searxng{base(""), set.APIKey}
	}
	return nil
}

// presentHits returns up to most hits as the model reads them: as plain text, and only those with a
// web URL.
func presentHits(hits []hit, most int) []hit {
	shown := []hit{}
	for _, h := range hits {
		u, err := url.Parse(h.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || len(h.URL) > target.MaxURL || len(shown) == most {
			continue
		}
		shown = append(shown, hit{clip(textOf(h.Title), 300), visibleText(h.URL), clip(textOf(h.Snippet), 2000)})
	}
	return shown
}

// textOf returns the text in a piece of HTML, on one line.
func textOf(markup string) string {
	var b strings.Builder
	for tokens := html.NewTokenizer(strings.NewReader(markup)); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			return strings.Join(strings.Fields(visibleText(b.String())), " ")
		case html.TextToken:
			b.Write(tokens.Text())
		}
	}
}
