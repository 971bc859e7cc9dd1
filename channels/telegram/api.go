package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-telegram/bot"

	"parley/channels"
	"parley/tools/plainhttp"
	"parley/tools/plainjson"
)

// maxAnswerBytes is how much is read of one answer: a hundred updates with the longest texts and everything that
// can come with them stay far below this.
const maxAnswerBytes = 64 << 20

// newTransport makes an account's transport to a server that uses TLS. It speaks HTTP/1.1, where a hanging poll
// does not block sends. It closes idle connections before servers usually do, because a POST on a connection that
// is being closed has an unknown outcome.
func newTransport() *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                 proxyForHTTPS,
		Protocols:             protocols,
		MaxIdleConns:          256,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       45 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// newClient makes the HTTP client of one account. For a Bot API server without TLS, which must be nearby, it uses a
// transport that needs less CPU time.
func newClient() *http.Client {
	t := newTransport()
	return clientOver(&plainhttp.Transport{Other: t, IdleTime: t.IdleConnTimeout, NeverRepeat: true})
}

// clientOver returns a client whose requests check their leases and use the given transport.
func clientOver(t http.RoundTripper) *http.Client {
	return &http.Client{
		Transport: channels.LeaseCheckedHTTP1(t),
		// A Bot API server does not redirect, and if another server does, the new address must not get the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// proxyForHTTPS returns the proxy that the environment names for an HTTPS request, whose content the proxy can't
// read. It returns none for plain HTTP, because a Bot API server that is reached that way is nearby.
func proxyForHTTPS(req *http.Request) (*url.URL, error) {
	if req.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(req)
}

// An apiAnswer is the JSON that the Bot API sends in answer to every call.
type apiAnswer struct {
	OK         bool            `json:"ok"`
	Result     json.RawMessage `json:"result"`
	ErrorCode  int             `json:"error_code"`
	Text       string          `json:"description"`
	Parameters struct {
		RetryAfter int `json:"retry_after"`
		MovedTo    int `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// An api is the Bot API for one account.
type api struct {
	methodBase       string // the URL of the API's methods, with the token
	fileBase         string // the URL of files, with the token
	isOfficialServer bool   // whether the server is DefaultAPIURL
	http             *http.Client
	library          *bot.Bot
	reached          channels.Reachability // whether the last check, send or setting of the webhook reached Telegram
	log              *slog.Logger          // names the channel
}

// call makes one call to the Bot API that may be repeated, and decodes its result. Its errors are those of ctx, or
// *channels.SendError with the fault Retry or Stop, and contain neither the token nor the text of anybody's
// message.
func (c *api) call(ctx context.Context, method string, params, result any) error {
	req, err := c.newRequest(ctx, method, params)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", method, ctx.Err())
		}
		return unreachableError(method, err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer has been read, or is given up
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", method, ctx.Err())
		}
		return unreachableError(method, err)
	}
	var a apiAnswer
	if err := json.Unmarshal(data, &a); err != nil || (!a.OK && a.ErrorCode == 0) {
		return &channels.SendError{
			Fault: channels.Retry,
			Code:  "http_" + strconv.Itoa(resp.StatusCode),
			Err:   fmt.Errorf("%s: HTTP status %d without an answer of the Bot API", method, resp.StatusCode),
		}
	}
	if !a.OK {
		return refusalError(method, a)
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return &channels.SendError{Fault: channels.Retry, Code: "unreadable", Err: fmt.Errorf("decode %s: %w", method, err)}
	}
	return nil
}

// newRequest makes the request of a call.
func (c *api) newRequest(ctx context.Context, method string, params any) (*http.Request, error) {
	body, err := plainjson.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", method, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.methodBase+method, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", method, withoutURL(err))
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// callOnce makes one call to the Bot API that says something to people, and decodes its result. Parameters and
// errors are those of go-telegram/bot; sendError classifies the errors. The library itself would write a form for
// each call, through a pipe and with an additional goroutine; it does that only for files.
func (c *api) callOnce(ctx context.Context, method string, params, result any) error {
	req, err := c.newRequest(ctx, method, params)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }() // the answer has been read, or is given up
	noteStatus(ctx, resp)
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("read the answer to %s: %w", method, err)
	}
	var a apiAnswer
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("decode the answer to %s: %w", method, err)
	}
	if !a.OK {
		return a.refusal(method)
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("decode what came of %s: %w", method, err)
	}
	return nil
}

// refusal returns go-telegram/bot's error for an answer that is not OK.
func (a apiAnswer) refusal(method string) error {
	switch a.ErrorCode {
	case http.StatusTooManyRequests:
		return &bot.TooManyRequestsError{Message: a.Text, RetryAfter: a.Parameters.RetryAfter}
	case http.StatusBadRequest:
		if a.Parameters.MovedTo != 0 {
			return &bot.MigrateError{Message: a.Text, MigrateToChatID: a.Parameters.MovedTo}
		}
		return fmt.Errorf("%w, %s", bot.ErrorBadRequest, a.Text)
	case http.StatusUnauthorized:
		return bot.ErrorUnauthorized
	case http.StatusForbidden:
		return fmt.Errorf("%w, %s", bot.ErrorForbidden, a.Text)
	case http.StatusNotFound:
		return bot.ErrorNotFound
	}
	return fmt.Errorf("%s was refused: %d", method, a.ErrorCode)
}

// unreachableError returns the error for a call that got no answer.
func unreachableError(method string, err error) error {
	return &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: fmt.Errorf("%s: %w", method, withoutURL(err))}
}

// refusalError returns the error for a call that the Bot API itself refused.
func refusalError(method string, a apiAnswer) error {
	e := &channels.SendError{
		Fault: channels.Retry,
		Code:  strconv.Itoa(a.ErrorCode),
		Err:   fmt.Errorf("%s: %s", method, http.StatusText(a.ErrorCode)),
	}
	switch a.ErrorCode {
	case http.StatusBadRequest:
		if method == "setWebhook" { // the text says what is wrong with the address, and quotes nobody
			e.Err = fmt.Errorf("%s: %s", method, a.Text)
		}
	case http.StatusUnauthorized, http.StatusNotFound: // the token was revoked, or never existed
		e.Fault = channels.Stop
		e.Err = fmt.Errorf("%s: Telegram refuses the bot token", method)
	case http.StatusTooManyRequests:
		e.RateLimited = true
		e.RetryAfter = time.Duration(a.Parameters.RetryAfter) * time.Second
	}
	return e
}

// A bufferingClient sends the requests of go-telegram/bot with buffered bodies.
type bufferingClient struct{ http *http.Client }

// Do sends one request. go-telegram/bot streams bodies through a pipe; Do buffers the whole body, so that a request
// of which nothing has been sent can go out on another connection.
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
	noteStatus(req.Context(), resp)
	return resp, nil
}

const (
	maxTelegramWait = 30 * time.Second // longest wait between attempts after an error from Telegram
	maxOwnWait      = 2 * time.Second  // longest wait after an error from our own servers: people are waiting for it
)
