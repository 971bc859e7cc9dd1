package telegram

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
	"sync/atomic"
	"time"

	"parley/channels"
)

// maxAnswer bounds what is read of one answer: a hundred updates of the longest
// texts, with all that may come along, stay far below.
const maxAnswer = 64 << 20

// newClient makes an HTTP client for one account. It speaks HTTP/1.1, where a
// poll that hangs blocks no send. Idle connections are given up before servers
// usually do: a POST on one that is being closed is an unknown outcome.
func newClient() *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Client{
		Transport: channels.LeaseCheckedTransport(&http.Transport{
			Proxy:                 proxyForHTTPS,
			Protocols:             protocols,
			MaxIdleConns:          256,
			MaxIdleConnsPerHost:   256,
			IdleConnTimeout:       45 * time.Second,
			TLSHandshakeTimeout:   10 * time.Second,
			ExpectContinueTimeout: time.Second,
		}),
		// A Bot API server does not redirect, and whoever does may not learn the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// proxyForHTTPS takes the environment's proxy for HTTPS only, where it cannot read
// along. A Bot API server reached over plain HTTP is a neighbour.
func proxyForHTTPS(req *http.Request) (*url.URL, error) {
	if req.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// An answer is how the Bot API answers every call.
type answer struct {
	OK         bool            `json:"ok"`
	Result     json.RawMessage `json:"result"`
	ErrorCode  int             `json:"error_code"`
	Text       string          `json:"description"`
	Parameters struct {
		RetryAfter int `json:"retry_after"`
	} `json:"parameters"`
}

// call makes one call of the Bot API that may be repeated. Its errors are
// *channels.SendError of kind Retry or Stop, or ctx's, and hold neither the
// token nor a text of anybody's.
func (c *Channel) call(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+method, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("prepare %s: %w", method, withoutURL(err))
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", method, ctx.Err())
		}
		return unreachable(method, err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer is read by now, or given up
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", method, ctx.Err())
		}
		return unreachable(method, err)
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil || (!a.OK && a.ErrorCode == 0) {
		return &channels.SendError{
			Fault: channels.Retry,
			Code:  "http_" + strconv.Itoa(resp.StatusCode),
			Err:   fmt.Errorf("%s: HTTP status %d without an answer of the Bot API", method, resp.StatusCode),
		}
	}
	if !a.OK {
		return refused(method, a)
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return &channels.SendError{Fault: channels.Retry, Code: "unreadable", Err: fmt.Errorf("decode %s: %w", method, err)}
	}
	return nil
}

// unreachable is the error of a call that got no answer.
func unreachable(method string, err error) error {
	return &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: fmt.Errorf("%s: %w", method, withoutURL(err))}
}

// refused is the error of a call that the Bot API itself refused.
func refused(method string, a answer) error {
	e := &channels.SendError{
		Fault: channels.Retry,
		Code:  strconv.Itoa(a.ErrorCode),
		Err:   fmt.Errorf("%s: %s", method, http.StatusText(a.ErrorCode)),
	}
	switch a.ErrorCode {
	case http.StatusBadRequest:
		if method == "setWebhook" { // it says what is wrong with the address, and cites nobody
			e.Err = fmt.Errorf("%s: %s", method, a.Text)
		}
	case http.StatusUnauthorized, http.StatusNotFound: // revoked, and never a token
		e.Fault = channels.Stop
		e.Err = fmt.Errorf("%s: Telegram refuses the bot token", method)
	case http.StatusTooManyRequests:
		e.Limited = true
		e.RetryAfter = time.Duration(a.Parameters.RetryAfter) * time.Second
	}
	return e
}

// withoutURL takes the URL, and with it the token, off an error of net/http.
func withoutURL(err error) error {
	for {
		outer, ok := errors.AsType[*url.Error](err)
		if !ok {
			return err
		}
		err = outer.Err
	}
}

// A requestTrace is what is known of one request of the library's.
type requestTrace struct {
	written atomic.Bool  // some of it may have left
	status  atomic.Int32 // of the answer; 0 while there is none
}

type tripKey struct{}

// follow makes a context by which the bufferingClient and the transport report on a request.
func follow(ctx context.Context) (context.Context, *requestTrace) {
	t := new(requestTrace)
	ctx = context.WithValue(ctx, tripKey{}, t)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The transport takes another connection only where nothing had left on
		// the first. From a connection on nothing is certain: writing goes on
		// beside a cancelled call, so that "nothing written yet" may be stale.
		GetConn: func(string) { t.written.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { t.written.Store(true) },
	}), t
}

// A bufferingClient sends the library's requests.
type bufferingClient struct{ http *http.Client }

// Do sends one request. The library streams bodies through a pipe; held whole,
// a request of which nothing has left can go out on another connection.
func (c bufferingClient) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("build the request: %w", err)
	}
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	if t, ok := req.Context().Value(tripKey{}).(*requestTrace); ok {
		t.status.Store(int32(resp.StatusCode))
	}
	return resp, nil
}

const (
	mostWait = 30 * time.Second // for Telegram
	ownWait  = 2 * time.Second  // for servers of our own: people wait for these
)
