package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
	"parley/channels/backoff"
)

// callTimeout limits every call except uploads.
const callTimeout = 30 * time.Second

// newClient makes the HTTP client of one app.
func newClient() *http.Client {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // if a server redirects, the new address must not get the token
	}}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		t := standard.Clone()
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 128, 128
		t.IdleConnTimeout = 45 * time.Second // before servers close connections: a POST on a connection that is closing has an unknown outcome
		// Over HTTP/2, a connection that breaks would fail every call in flight.
		t.ForceAttemptHTTP2 = false
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		c.Transport = channels.LeaseCheckedHTTP1(t)
	}
	return c
}

// A requestTrace records whether any bytes of a call may have been sent. If none were, the call may be repeated
// without the risk of doing it twice.
type requestTrace struct{ written atomic.Bool }

// startCall returns a context that limits a call's duration, the trace that records whether bytes were sent, and
// the function that cancels the context.
func startCall(ctx context.Context) (context.Context, *requestTrace, context.CancelFunc) {
	ctx, done := context.WithTimeout(ctx, callTimeout)
	ctx, t := withRequestTrace(ctx)
	return ctx, t, done
}

// withRequestTrace returns a context for a call, and the trace that records whether any of its bytes were sent.
func withRequestTrace(ctx context.Context) (context.Context, *requestTrace) {
	t := new(requestTrace)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.written.Store(false) }, // the transport switches connections only if nothing was written
		GotConn: func(httptrace.GotConnInfo) { t.written.Store(true) },
	}), t
}

// callRepeatable makes a call that does no harm if it is made twice. It fails with a *channels.SendError, whose
// fault is never Unknown.
func callRepeatable(ctx context.Context, do func(context.Context) error) error {
	ctx, t, done := startCall(ctx)
	defer done()
	if err := do(ctx); err != nil {
		return asRepeatable(sendError(err, t))
	}
	return nil
}

// callOnce makes a call that must not be made twice. It fails with a *channels.SendError.
func callOnce(ctx context.Context, do func(context.Context) error) error {
	ctx, t, done := startCall(ctx)
	defer done()
	if err := do(ctx); err != nil {
		return sendError(err, t)
	}
	return nil
}

// sendError classifies a failed call. It drops slack-go's texts, which may quote a token or a message.
func sendError(err error, t *requestTrace) *channels.SendError {
	if limited, ok := errors.AsType[*slackgo.RateLimitedError](err); ok {
		return &channels.SendError{
			Fault: channels.Retry, Code: "ratelimited", Err: errors.New("too many calls"),
			RateLimited: true, RetryAfter: limited.RetryAfter,
		}
	}
	if refusal, ok := errors.AsType[slackgo.SlackErrorResponse](err); ok {
		return refusalError(refusal)
	}
	if status, ok := errors.AsType[slackgo.StatusCodeError](err); ok {
		e := &channels.SendError{
			Fault: channels.Unknown, Code: "http_" + strconv.Itoa(status.Code), Err: fmt.Errorf("HTTP status %d", status.Code),
		}
		if status.Code < 500 {
			e.Fault = channels.Retry // Slack answers refusals with 200, so a proxy refused this
			e.RateLimited = status.Code == http.StatusTooManyRequests
		}
		return e
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if t.written.Load() {
		return &channels.SendError{Fault: channels.Unknown, Code: "cut_off", Err: err}
	}
	return &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: err}
}

// refusalError classifies the error with which Slack itself refused a call.
func refusalError(r slackgo.SlackErrorResponse) *channels.SendError {
	e := &channels.SendError{Fault: channels.Rejected, Code: safeCode(r.Err), Err: errors.New("refused by Slack")}
	switch r.Err {
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired",
		"not_allowed_token_type", "org_login_required", "team_access_not_granted":
		e.Fault, e.Err = channels.Stop, errors.New("the token is invalid or revoked")
	case "missing_scope":
		e.Err = errors.New("the app lacks a scope")
		if r.Needed != "" {
			e.Err = errors.New("the app lacks the scope " + safeCode(r.Needed))
		}
	case "internal_error", "fatal_error", "service_unavailable":
		e.Fault = channels.Unknown // Slack may have carried out the call nevertheless
	case "ratelimited", "rate_limited":
		e.Fault, e.RateLimited = channels.Retry, true
	case "message_limit_exceeded":
		e.Fault, e.RateLimited, e.AccountWide = channels.Retry, true, true
	case "request_timeout", "team_added_to_org":
		e.Fault = channels.Retry
	}
	return e
}

// safeCode returns Slack's error code or scope if it looks like one, and otherwise "other": texts that a person may
// have written must not reach errors and logs.
func safeCode(code string) string {
	if code == "" || len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_:.,-", r)
	}) {
		return "other"
	}
	return code
}

// asRepeatable changes e's fault from Unknown to Retry and returns e: the call does no harm if it is made twice, so
// an unknown outcome is treated as a failure.
func asRepeatable(e *channels.SendError) *channels.SendError {
	if e.Fault == channels.Unknown {
		e.Fault = channels.Retry
	}
	return e
}

// A retryWait waits between attempts, longer each time; an error from Slack may prolong a wait.
type retryWait struct {
	series       backoff.Series
	longest      time.Duration // the longest wait; 0 means maxSlackWait
	keepsLongest bool          // whether longest stays the limit after an error from Slack; otherwise maxSlackWait is the limit then
}

const (
	maxSlackWait      = 30 * time.Second // longest wait after an error from Slack
	maxOwnWait        = 2 * time.Second  // longest wait after an error from our own bus or book: people are waiting for it
	maxSenderLaneWait = 10 * time.Second // longest wait between two requests to Slack about one person
)

// pause waits before the next attempt, at least for as long as Slack's error asks. It returns false if ctx ended
// first.
func (w *retryWait) pause(ctx context.Context, err error) bool {
	most, atLeast := cmp.Or(w.longest, maxSlackWait), time.Duration(0)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok {
		atLeast = refusal.RetryAfter
		if !w.keepsLongest {
			most = maxSlackWait // after an error from Slack, give Slack time to recover
		}
	}
	return backoff.Sleep(ctx, max(w.series.Next(most), atLeast))
}
