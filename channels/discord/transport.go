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

// maxRefusalBytes is how much is read of an answer with status 429, which says when to try again.
const maxRefusalBytes = 64 << 10

// clients holds the HTTP clients of a Channel and the address of the REST API.
type clients struct {
	apiURL     *url.URL     // the root of the REST API
	apiClient  *http.Client // the client that discordgo uses
	fileClient *http.Client // downloads files, without the token
}

// newClients makes both clients, on top of the given client's transport if there is one. Its error says what is
// wrong with apiURL.
func newClients(given *http.Client, apiURL string) (*clients, error) {
	if apiURL == "" {
		apiURL = DefaultAPIURL
	}
	server, err := url.Parse(strings.TrimRight(apiURL, "/"))
	if err != nil || server.Host == "" || (server.Scheme != "http" && server.Scheme != "https") {
		return nil, errors.New("it has to be an address such as " + DefaultAPIURL)
	}
	out := &apiTransport{apiURL: server, next: http.DefaultTransport}
	if given != nil && given.Transport != nil {
		out.next = given.Transport
	} else if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		t := standard.Clone()
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 64, 64
		// Idle connections are closed before servers usually close them: a POST on a connection that the server is
		// closing has an unknown outcome.
		t.IdleConnTimeout = 45 * time.Second
		out.next = t
	}
	// Discord does not redirect, and if another server does, the new address must not get the token.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &clients{
		apiURL:     server,
		apiClient:  &http.Client{Transport: channels.LeaseCheckedTransport(out), CheckRedirect: stay},
		fileClient: &http.Client{Transport: out.next, CheckRedirect: stay},
	}, nil
}

// An apiTransport sends discordgo's requests to the configured server, because discordgo's own addresses are
// constants.
type apiTransport struct {
	apiURL *url.URL
	next   http.RoundTripper
}

// RoundTrip sends one request to the configured server and records the answer's status and rate limit in the
// request's requestTrace.
func (r *apiTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	rest, ok := strings.CutPrefix(req.URL.String(), discordgo.EndpointAPI)
	if !ok {
		return nil, errors.New("this request is not for the API")
	}
	to, err := url.Parse(r.apiURL.String() + "/" + rest)
	if err != nil {
		return nil, fmt.Errorf("address of a request: %w", err)
	}
	out := req.Clone(req.Context())
	out.URL, out.Host = to, ""
	resp, err := r.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if t, ok := req.Context().Value(requestTraceKey{}).(*requestTrace); ok {
		t.status.Store(int32(resp.StatusCode))
		if resp.StatusCode == http.StatusTooManyRequests {
			t.readRateLimit(resp)
		}
	}
	return resp, nil
}

// A requestTrace records how far one request got: whether bytes were sent, and the answer's status.
type requestTrace struct {
	written atomic.Bool  // whether some bytes may have left this machine
	status  atomic.Int32 // HTTP status of the answer; 0 while there is none

	// retryAfter and global are set from an answer with status 429: how long to wait, and whether the limit applies
	// to the whole account.
	retryAfter time.Duration
	isGlobal   bool
}

// requestTraceKey is the context key of a *requestTrace.
type requestTraceKey struct{}

// withRequestTrace returns a context for one request, and the trace in which apiTransport and net/http record how
// far that request got.
func withRequestTrace(ctx context.Context) (context.Context, *requestTrace) {
	t := new(requestTrace)
	ctx = context.WithValue(ctx, requestTraceKey{}, t)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.written.Store(false) }, // the transport switches to another connection only if nothing was sent
		GotConn: func(httptrace.GotConnInfo) { t.written.Store(true) },
	}), t
}

// readRateLimit reads how long to wait, and whether the limit covers the whole account, from an answer with status 429.
// discordgo drops part of it: its types do not say whether the whole account is limited. An answer that is not JSON comes from a proxy in front
// of Discord, and limits the whole account too.
func (t *requestTrace) readRateLimit(resp *http.Response) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusalBytes))
	_ = resp.Body.Close() // enough was read
	resp.Body = io.NopCloser(bytes.NewReader(data))
	var said struct {
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
	}
	if err != nil || json.Unmarshal(data, &said) != nil {
		said.Global = true
	}
	if said.RetryAfter == 0 {
		said.RetryAfter, _ = strconv.ParseFloat(resp.Header.Get("Retry-After"), 64) // 0 means the same as no header
	}
	// At most a day: months would overflow, and nobody waits that long.
	t.retryAfter = time.Duration(min(max(said.RetryAfter, 0), 86400) * float64(time.Second))
	t.isGlobal = said.Global || resp.Header.Get("X-RateLimit-Scope") == "global"
}

// DefaultAPIURL is Discord's own REST API.
const DefaultAPIURL = "https://discord.com/api/v9"
