package discord

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
)

// rejectedError returns an error with the fault Rejected: the same call would fail again.
func rejectedError(code string, err error) error {
	return &channels.SendError{Fault: channels.Rejected, Code: code, Err: err}
}

// codeOverloaded is Discord's error code for "API resource is currently overloaded".
const codeOverloaded = 130000

// sendError classifies a failed call by its error and trace. It leaves out discordgo's texts, because they contain
// the answer's body, which may quote the message to be sent.
func sendError(err error, t *requestTrace) *channels.SendError {
	status := int(t.status.Load())
	bareStatus := fmt.Errorf("HTTP status %d", status)
	e := &channels.SendError{Fault: channels.Unknown, Code: "http_" + strconv.Itoa(status), Err: bareStatus}
	code, known := 0, false
	if refusal, ok := errors.AsType[*discordgo.RESTError](err); ok && refusal.Message != nil {
		code, known = refusal.Message.Code, true
	}
	switch {
	case status == 0 && t.written.Load():
		e.Code, e.Err = "cut_off", withoutURL(err)
	case status == 0:
		e.Fault, e.Code, e.Err = channels.Retry, "unreachable", withoutURL(err)
	case status == http.StatusTooManyRequests:
		e.Fault, e.Code = channels.Retry, "429"
		e.RateLimited, e.AccountWide, e.RetryAfter = true, t.isGlobal, t.retryAfter
	case status == http.StatusUnauthorized && known:
		e.Fault, e.Code, e.Err = channels.Stop, "401", errors.New("the bot token is invalid or revoked")
	case code == codeOverloaded:
		e.Fault, e.Code = channels.Retry, strconv.Itoa(code)
	case status >= 300 && status < 500 && !known:
		e.Fault = channels.Retry // a proxy, not Discord, refused the request
	case status >= 400 && status < 500:
		e.Fault, e.Code = channels.Rejected, strconv.Itoa(cmp.Or(code, status))
	}
	return e
}

// isRejected reports whether Discord refused a call in such a way that repeating it would not help.
func isRejected(err error) bool {
	refusal, ok := errors.AsType[*channels.SendError](err)
	return ok && refusal.Fault == channels.Rejected
}

// withoutURL returns the cause inside an error from net/http, without the request's URL.
func withoutURL(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}
