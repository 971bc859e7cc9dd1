package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
)

// maxRefusal bounds what is read of an answer that says when to come again.
const maxRefusal = 64 << 10

// clients are the HTTP clients of a channel.
type clients struct {
	server *url.URL
	api    *http.Client // through which the library works
	files  *http.Client // that knows no token
}

// newClients makes them.
func newClients(given *http.Client, apiURL string) (*clients, error) {
	if apiURL == "" {
		apiURL = DefaultAPIURL
	}
	server, err := url.Parse(strings.TrimRight(apiURL, "/"))
	if err != nil || server.Host == "" || (server.Scheme != "http" && server.Scheme != "https") {
		return nil, errors.New("want an address such as " + DefaultAPIURL)
	}
	out := &apiTransport{server: server, next: http.DefaultTransport}
	if given != nil && given.Transport != nil {
		out.next = given.Transport
	} else if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		t := standard.Clone()
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 64, 64
		// Given up before servers usually do: a POST on a connection that is
		// being closed is an unknown outcome.
		t.IdleConnTimeout = 45 * time.Second
		out.next = t
	}
	// Discord does not redirect, and whoever does may not learn the token.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &clients{
		server: server,
		api:    &http.Client{Transport: channels.LeaseCheckedTransport(out), CheckRedirect: stay},
		files:  &http.Client{Transport: out.next, CheckRedirect: stay},
	}, nil
}

// An apiTransport takes requests to the configured server, wherever the library means
// them to go: its addresses are constants.
type apiTransport struct {
	server *url.URL
	next   http.RoundTripper
}

// RoundTrip carries one request and notes on its requestTrace how far it came.
func (r *apiTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	rest, ok := strings.CutPrefix(req.URL.String(), discordgo.EndpointAPI)
	if !ok {
		return nil, errors.New("this request is not for the API")
	}
	to, err := url.Parse(r.server.String() + "/" + rest)
	if err != nil {
		return nil, fmt.Errorf("address of a request: %w", err)
	}
	out := req.Clone(req.Context())
	out.URL, out.Host = to, ""
	resp, err := r.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if t, ok := req.Context().Value(tripKey{}).(*requestTrace); ok {
		t.status.Store(int32(resp.StatusCode))
		if resp.StatusCode == http.StatusTooManyRequests {
			t.limited(resp)
		}
	}
	return resp, nil
}

// A requestTrace is what is known of one request.
type requestTrace struct {
	written atomic.Bool  // some of it may have left
	status  atomic.Int32 // of the answer; 0 while there is none

	// Of a 429.
	retryAfter time.Duration
	global     bool
}

type tripKey struct{}

// follow makes a context by which the transport reports on a request.
func follow(ctx context.Context) (context.Context, *requestTrace) {
	t := new(requestTrace)
	ctx = context.WithValue(ctx, tripKey{}, t)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.written.Store(false) }, // another one is taken only where nothing had left
		GotConn: func(httptrace.GotConnInfo) { t.written.Store(true) },
	}), t
}

// limited reads when a request may be repeated. The library keeps less of it
// than there is: whether the whole account is meant is not in its types. An
// answer that is not JSON comes from what stands before Discord, and means the
// account as well.
func (t *requestTrace) limited(resp *http.Response) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	_ = resp.Body.Close() // read as far as it matters
	resp.Body = io.NopCloser(bytes.NewReader(data))
	var said struct {
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
	}
	if err != nil || json.Unmarshal(data, &said) != nil {
		said.Global = true
	}
	if said.RetryAfter == 0 {
		said.RetryAfter, _ = strconv.ParseFloat(resp.Header.Get("Retry-After"), 64) // 0 is as good as left out
	}
	// Months would not fit, and nobody waits for them.
	t.retryAfter = time.Duration(min(max(said.RetryAfter, 0), 86400) * float64(time.Second))
	t.global = said.Global || resp.Header.Get("X-RateLimit-Scope") == "global"
}

// withoutURL takes the URL off an error of net/http.
func withoutURL(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}
