package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/bus/trace"
	"parley/tools/posting"
)

const (
	answerTime     = 10 * time.Second // how long a collector may take to answer
	maxRetryAfter  = 2 * time.Minute  // the longest wait that a collector can ask for
	maxAnswerBytes = 64 << 10         // how much of an answer is read
	maxReasonBytes = 200              // how many bytes of its reason are logged
)

// clients are the HTTP clients. They follow no redirect, because spans must only go where the operator says.
type clients struct{ any, local *http.Client }

func newClients() clients {
	return clients{posting.NewClient(posting.NewTransport(), answerTime), posting.NewClient(posting.NewLocalTransport(), answerTime)}
}

// clientFor returns the client for a collector. Without TLS, headers and texts reach only this machine, whatever the host's name
// stands for at the moment, and go through no proxy.
func (c clients) clientFor(at Collector) *http.Client {
	if u, err := url.Parse(at.URL); (at.Text || len(at.Headers) > 0) && (err != nil || u.Scheme == "http") {
		return c.local
	}
	return c.any
}

func (c clients) close() {
	c.any.CloseIdleConnections()
	c.local.CloseIdleConnections()
}

// An outcome is the result of a request.
type outcome struct {
	problem    string        // why not all spans were accepted; "" if they were
	refused    int           // how many spans the collector refused
	retryable  bool          // whether the spans may be accepted later
	retryAfter time.Duration // the wait that the collector asks for; 0 means none
}

// Check sends a request without spans, and returns why a collector doesn't accept it.
func Check(ctx context.Context, c Collector, s Service) error {
	e := New(Config{Collector: c, Service: s, Redact: func(text string) string { return text }})
	defer e.clients.close()
	if out := e.post(ctx, c, nil); out.problem != "" {
		return errors.New(out.problem)
	}
	return nil
}

// post sends spans to a collector once.
func (e *Exporter) post(ctx context.Context, to Collector, batch []trace.Span) outcome {
	body, err := encode(e.cfg.Service, batch)
	if err != nil {
		return outcome{problem: "they can't be encoded: " + err.Error(), refused: len(batch)}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return outcome{problem: "the endpoint can't be used", refused: len(batch)}
	}
	r.Header.Set("User-Agent", "Parley/"+e.cfg.Service.Version)
	for _, pair := range to.Headers {
		name, value, _ := strings.Cut(pair, ":")
		r.Header.Set(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := e.clients.clientFor(to).Do(r)
	if err != nil {
		return outcome{problem: posting.Problem(err, answerTime, e.cfg.Redact), retryable: true}
	}
	defer func() { _ = answer.Body.Close() }() // the rest of the answer doesn't matter
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	if answer.StatusCode/100 == 2 {
		return e.judge(said, err, len(batch))
	}
	out := outcome{problem: "HTTP " + strconv.Itoa(answer.StatusCode)}
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		out.retryable, out.retryAfter = true, posting.RetryAfter(answer.Header, time.Now(), maxRetryAfter)
	default:
		out.refused = len(batch)
	}
	return out
}

// judge returns the outcome of a request that the collector has accepted, though perhaps without some of its spans.
func (e *Exporter) judge(said []byte, err error, sent int) outcome {
	var answer struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"` // a 64-bit number, so it is a string
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if err != nil || json.Unmarshal(said, &answer) != nil {
		return outcome{} // the status says that the collector has the spans
	}
	refused, err := answer.PartialSuccess.RejectedSpans.Int64()
	if err != nil || refused <= 0 {
		return outcome{}
	}
	why := posting.First(e.cfg.Redact(answer.PartialSuccess.ErrorMessage), maxReasonBytes)
	return outcome{problem: "it rejects anyWaiting: " + why, refused: int(min(refused, int64(sent)))}
}
