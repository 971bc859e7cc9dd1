// Package client connects commands in a terminal to the home's server: it calls the server's API
// over the home's socket, and follows conversations.
//
// client.go calls the API and follows events; join.go reaches the server that has the home open, or
// becomes it while a command runs; conversation.go is a terminal's end of a conversation with the
// agent; catchup.go finds what the terminal missed while no server was running; signin.go leads
// somebody through signing in to an MCP server; records.go reads the audit's records; answered.go
// waits for an answer on a channel.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"parley/bus"
	"parley/tools/plainjson"
)

// A Client calls a server's API. If the server refuses a request, the error is an *Error.
type Client struct {
	Base   string // what the URLs of all requests begin with
	HTTP   *http.Client
	Hosted bool // whether the server is this process, while the command runs
	Shared bool // whether the home is part of a fleet, where processes with other homes may serve the same messages
	// Retry, if set, is called when the server could not be reached; if it returns nil, the request
	// is made once more.
	Retry func(ctx context.Context) error
}

// An Error is a server's answer that refuses a request.
type Error struct {
	Status int
	bus.Failure
}

// Error returns the server's message.
func (e *Error) Error() string { return e.Message }

// Get requests a path, and decodes the JSON answer into a value or, if into is a writer, copies the
// answer to it.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.Do(ctx, http.MethodGet, path, "", nil, into)
}

// Do sends a request. body is sent, and into is filled, as JSON; either may be nil. key is the Idempotency-Key, with
// which the server recognizes a repeated request; "" for none.
func (c *Client) Do(ctx context.Context, method, path, key string, body, into any) error {
	res, err := c.send(ctx, method, path, key, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // the answer was read
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

// send sends a request as JSON. Its error is an *Error if the server refuses the request.
func (c *Client) send(ctx context.Context, method, path, key string, body any) (*http.Response, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = plainjson.Marshal(body); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
	}
	header := http.Header{}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	// A request that only reads, and one that has a key, may be repeated.
	res, err := c.sendRequest(ctx, method, path, header, raw, method == http.MethodGet || key != "")
	if err != nil {
		return nil, err
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer func() { _ = res.Body.Close() }()
	failed := struct{ Error bus.Failure }{}
	if err := json.NewDecoder(res.Body).Decode(&failed); err != nil || failed.Error.Message == "" {
		return nil, fmt.Errorf("the server answered %s", res.Status)
	}
	return nil, &Error{Status: res.StatusCode, Failure: failed.Error}
}

// sendRequest sends a request. It sends it once more if the server could not be reached; if the
// request was cut off, only if it is repeatable.
func (c *Client) sendRequest(ctx context.Context, method, path string, header http.Header, body []byte, repeatable bool) (*http.Response, error) {
	for first := true; ; first = false {
		req, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("make the request: %w", err)
		}
		req.Header = header
		res, err := c.HTTP.Do(req)
		if err == nil {
			return res, nil
		}
		failed, ok := errors.AsType[*net.OpError](err)
		unsent := ok && failed.Op == "dial"
		if !first || !unsent && !repeatable || c.Retry == nil || c.Retry(ctx) != nil {
			return nil, fmt.Errorf("reach the server: %w", err)
		}
	}
}

// A serverEvent is one server-sent event.
type serverEvent struct {
	id, kind string
	data     []byte
}

// errCut says that a stream of events ended.
var errCut = errors.New("the stream of events was cut off")

// follow reads the events that the server streams at a path, beginning after the one with lastID,
// and calls handle with each event. It returns when ctx is done, the stream is cut off, or handle
// returns an error.
func (c *Client) follow(ctx context.Context, path, lastID string, handle func(serverEvent) error) error {
	header := http.Header{}
	if lastID != "" {
		header.Set("Last-Event-ID", lastID)
	}
	res, err := c.sendRequest(ctx, http.MethodGet, path, header, nil, true)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // the stream was read
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", res.Status)
	}
	lines := bufio.NewReader(res.Body)
	var n serverEvent
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
				if err := handle(n); err != nil {
					return err
				}
			}
			n = serverEvent{}
		}
	}
}
