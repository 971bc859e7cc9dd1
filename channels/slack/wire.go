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

// callTimeout bounds every call but uploads.
const callTimeout = 30 * time.Second

// newClient makes an HTTP client for one app.
func newClient() *http.Client {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // whoever redirects may not learn the token
	}}
	if standard, ok := http.DefaultTransport.(*http.Transport); ok {
		t := standard.Clone()
		t.MaxIdleConns, t.MaxIdleConnsPerHost = 128, 128
		t.IdleConnTimeout = 45 * time.Second // before servers do: a POST on a closing connection is unknown
		// Over HTTP/2 one connection that dies takes every call in flight along.
		t.ForceAttemptHTTP2 = false
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		c.Transport = channels.LeaseCheckedTransport(t)
	}
	return c
}

// A requestTrace reports whether some bytes of a call may have left. If not, the call may be
// repeated without fear of doing it twice.
type requestTrace struct{ written atomic.Bool }

// begin bounds a call in time and traces how far it comes.
func begin(ctx context.Context) (context.Context, *requestTrace, context.CancelFunc) {
	ctx, done := context.WithTimeout(ctx, callTimeout)
	ctx, t := follow(ctx)
	return ctx, t, done
}

func follow(ctx context.Context) (context.Context, *requestTrace) {
	t := new(requestTrace)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { t.written.Store(false) }, // the transport changes connections only if nothing was written
		GotConn: func(httptrace.GotConnInfo) { t.written.Store(true) },
	}), t
}

// calling makes a call that may be made twice without harm.
func calling(ctx context.Context, do func(context.Context) error) error {
	ctx, t, done := begin(ctx)
	defer done()
	if err := do(ctx); err != nil {
		return repeatable(sendError(err, t))
	}
	return nil
}

// callingOnce makes a call that may not be made twice.
func callingOnce(ctx context.Context, do func(context.Context) error) error {
	ctx, t, done := begin(ctx)
	defer done()
	if err := do(ctx); err != nil {
		return sendError(err, t)
	}
	return nil
}

// sendError tells what a failed call means. It drops the texts of slack-go, which
// may quote a token or a message.
func sendError(err error, t *requestTrace) *channels.SendError {
	if limited, ok := errors.AsType[*slackgo.RateLimitedError](err); ok {
		return &channels.SendError{
			Fault: channels.Retry, Code: "ratelimited", Err: errors.New("too many calls"),
			Limited: true, RetryAfter: limited.RetryAfter,
		}
	}
	if refusal, ok := errors.AsType[slackgo.SlackErrorResponse](err); ok {
		return refused(refusal)
	}
	if status, ok := errors.AsType[slackgo.StatusCodeError](err); ok {
		e := &channels.SendError{
			Fault: channels.Unknown, Code: "http_" + strconv.Itoa(status.Code), Err: fmt.Errorf("HTTP status %d", status.Code),
		}
		if status.Code < 500 {
			e.Fault = channels.Retry // Slack answers refusals with 200: a proxy refused this
			e.Limited = status.Code == http.StatusTooManyRequests
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

// refused is the error of a call that Slack itself refused.
func refused(r slackgo.SlackErrorResponse) *channels.SendError {
	e := &channels.SendError{Fault: channels.Rejected, Code: known(r.Err), Err: errors.New("refused by Slack")}
	switch r.Err {
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired",
		"not_allowed_token_type", "org_login_required", "team_access_not_granted":
		e.Fault, e.Err = channels.Stop, errors.New("the token is refused")
	case "missing_scope":
		e.Err = errors.New("the app lacks a scope")
		if r.Needed != "" {
			e.Err = errors.New("the app lacks the scope " + known(r.Needed))
		}
	case "internal_error", "fatal_error", "service_unavailable":
		e.Fault = channels.Unknown // Slack may have done it all the same
	case "ratelimited", "rate_limited":
		e.Fault, e.Limited = channels.Retry, true
	case "message_limit_exceeded":
		e.Fault, e.Limited, e.Account = channels.Retry, true, true
	case "request_timeout", "team_added_to_org":
		e.Fault = channels.Retry
	}
	return e
}

// known lets Slack's codes and scopes into errors and logs, and no text that a
// person may have written.
func known(code string) string {
	if code == "" || len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("_:.,-", r)
	}) {
		return "other"
	}
	return code
}

// repeatable is the error of a call that may be made twice without harm, so that an
// unknown outcome is as good as a failure.
func repeatable(e *channels.SendError) *channels.SendError {
	if e.Fault == channels.Unknown {
		e.Fault = channels.Retry
	}
	return e
}

// A retryWait is a series of growing waits that Slack's errors may prolong.
type retryWait struct {
	series backoff.Series
	most   time.Duration // 0 is mostWait
	firm   bool          // most also bounds the wait after an error of Slack's
}

const (
	mostWait  = 30 * time.Second // after an error of Slack's
	ownWait   = 2 * time.Second  // after an error of our own bus or book, for which people wait
	asideWait = 10 * time.Second // between questions about one person
)

// pause waits before the next attempt, at least for as long as Slack's error asks.
// It is false if ctx ended first.
func (w *retryWait) pause(ctx context.Context, err error) bool {
	most, atLeast := cmp.Or(w.most, mostWait), time.Duration(0)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok {
		atLeast = refusal.RetryAfter
		if !w.firm {
			most = mostWait // the error is Slack's, and so Slack is to be spared
		}
	}
	return backoff.Sleep(ctx, max(w.series.Next(most), atLeast))
}
