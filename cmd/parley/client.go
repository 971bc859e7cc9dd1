package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"parley/bus"
)

// A client speaks to a server's API. Its errors are what the server says.
type client struct {
	base   string
	http   *http.Client
	hosted bool // the server is this process, for as long as the command runs
}

// An apiError is a refusal of the server's.
type apiError struct {
	status int
	bus.Failure
}

func (e *apiError) Error() string { return e.Message }

func (c *client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, "", nil, into)
}

// do asks for a path. body and into are JSON; either may be nil. key is the
// Idempotency-Key, if there is one.
func (c *client) do(ctx context.Context, method, path, key string, body, into any) error {
	res, err := c.send(ctx, method, path, key, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	if into == nil {
		return nil
	}
	if raw, ok := into.(io.Writer); ok {
		_, err = io.Copy(raw, res.Body)
	} else {
		err = json.NewDecoder(res.Body).Decode(into)
	}
	if err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}

func (c *client) send(ctx context.Context, method, path, key string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		content = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reach the server: %w", err)
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	failed := struct{ Error bus.Failure }{}
	if err := json.NewDecoder(res.Body).Decode(&failed); err != nil || failed.Error.Message == "" {
		return nil, fmt.Errorf("the server answers %s", res.Status)
	}
	return nil, &apiError{status: res.StatusCode, Failure: failed.Error}
}

// A news item is one server-sent event.
type news struct {
	id, kind string
	data     []byte
}

// errCut says that a stream of events ended.
var errCut = errors.New("the stream of events was cut off")

// follow hands over the events of a path from lastID on, until ctx is done, the
// stream is cut, or each gives an error.
func (c *client) follow(ctx context.Context, path, lastID string, each func(news) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("reach the server: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", res.Status)
	}
	lines := bufio.NewReader(res.Body)
	var n news
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return errors.Join(errCut, err)
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			n.id = value
		case "event":
			n.kind = value
		case "data":
			n.data = append(n.data, value...)
		case "":
			if n.kind != "" {
				if err := each(n); err != nil {
					return err
				}
			}
			n = news{}
		}
	}
}
