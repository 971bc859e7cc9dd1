package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"parley/tools"
	"parley/tools/plainjson"
)

// A searcher is a service that searches the web.
type searcher interface {
	// search asks for most hits, and returns them with the best first; nil if there are none. Some services return
	// more. The error is for the model.
	search(ctx context.Context, query string, most int) ([]hit, error)
}

// A hit is one page that a search has found.
type hit struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
}

// An endpoint is the HTTP API of a service.
type endpoint struct {
	client  *http.Client
	base    string
	service string
}

// refuseRedirect follows no redirect, because the request contains a key.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// query sends a request to a search service, and decodes the JSON answer into the value into. No
// error quotes the service.
func (e endpoint) query(ctx context.Context, method, path string, header http.Header, body, into any) error {
	var sent io.Reader
	if body != nil {
		raw, err := plainjson.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, e.base+path, sent)
	if err != nil {
		return tools.Errorf(tools.ExecutionFailed, "the search service cannot be asked: the operator checks [web] base_url")
	}
	r.Header = header
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := e.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return tools.Errorf(tools.ExecutionFailed, "the search service %s cannot be reached now", e.service)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return e.statusError(response.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil || len(raw) > maxBody || json.Unmarshal(raw, into) != nil {
		return tools.Errorf(tools.ExecutionFailed, "the search service %s gave an answer that cannot be read", e.service)
	}
	return nil
}

// statusError returns the error for an answer with a status other than 200.
func (e endpoint) statusError(status int) error {
	switch {
	case status == http.StatusForbidden && e.service == "searxng":
		return tools.Errorf(tools.ExecutionFailed, "the search service refuses JSON: the operator adds json to search.formats in SearXNG's settings.yml")
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusUnprocessableEntity && e.service == "brave":
		return tools.Errorf(tools.ExecutionFailed, "the search service %s refuses the key (status %d): the operator checks [web] api_key", e.service, status)
	case status == http.StatusTooManyRequests || status == 432 || status == 433:
		return tools.Errorf(tools.ExecutionFailed, "the search service %s has no more searches for us now: try again later, or answer without", e.service)
	}
	return tools.Errorf(tools.ExecutionFailed, "the search service %s failed with status %d: try again later, or answer without", e.service, status)
}
