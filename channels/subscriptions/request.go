package subscriptions

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"parley/bus"
	"parley/sessions/subscriptions"
	"parley/tools/plainjson"
	"parley/tools/posting"
)

const (
	answerTimeout = 10 * time.Second // how long a subscriber may take to answer
	maxRetryAfter = time.Hour        // the longest wait that a subscriber can ask for
	maxReadTime   = 5 * time.Second  // how long it may take to read what is posted
	maxText       = 64 << 10         // how much of a text an event has
	maxAnswer     = 64 << 10         // how much of an answer is read, so that its connection can be used again
)

// newClient makes the client for all requests. It verifies certificates, and follows no redirect: events go only where
// the operator says. Requests without TLS reach only this machine.
func newClient() *http.Client {
	return posting.NewClient(schemeTransport{posting.NewTransport(), posting.NewLocalTransport()}, answerTimeout)
}

// schemeTransport chooses between the transports with and without TLS.
type schemeTransport struct{ secure, local *http.Transport }

// RoundTrip implements http.RoundTripper.
func (b schemeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" {
		return b.local.RoundTrip(r)
	}
	return b.secure.RoundTrip(r)
}

// A refusal says why an event was not accepted.
type refusal struct {
	problem    string
	retryAfter time.Duration // the wait that the subscriber asks for; 0 for none
}

// A message is what is posted.
type message struct {
	ID        string             `json:"id"`
	Type      string             `json:"type"`
	Timestamp time.Time          `json:"timestamp"`
	Data      subscriptions.Data `json:"data"`
}

// post posts an event. It returns whether it was accepted, or else why not; neither if it is no longer to be posted. An
// error means that it was not posted.
func (c *courier) post(held context.Context, q *subscriptions.Queue, w subscriptions.Waiting) (accepted bool, _ *refusal, _ error) {
	e, due, err := c.current(held, q, w)
	if err != nil || !due {
		return false, nil, err
	}
	body, err := plainjson.Marshal(message{e.ID, e.Type, e.At.UTC(), e.Data})
	if err != nil {
		return false, nil, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	// A request that has begun is finished even if the process is told to end: otherwise the event would be posted twice.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(held), answerTimeout)
	defer cancel()
	r, err := c.request(ctx, e.ID, body, time.Now())
	if err != nil {
		return false, nil, err
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return false, &refusal{problem: posting.Problem(err, answerTimeout, c.Redact)}, nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // only its status matters
	_ = answer.Body.Close()
	if answer.StatusCode/100 == 2 {
		return true, nil, nil
	}
	why := &refusal{problem: "HTTP " + strconv.Itoa(answer.StatusCode), retryAfter: posting.RetryAfter(answer.Header, time.Now(), maxRetryAfter)}
	if answer.StatusCode/100 == 3 {
		why.problem += textRedirect
	}
	return false, why, nil
}

// current returns an event as it is now, and whether it is still to be posted. Erasing what one person has said leaves the
// event, so its text is read after that, and again if the process has stood still meanwhile.
func (c *courier) current(held context.Context, q *subscriptions.Queue, w subscriptions.Waiting) (subscriptions.Event, bool, error) {
	for {
		began := time.Now()
		c.Point("subscription:due")
		if due, err := q.IsDue(held, w); err != nil || !due {
			return subscriptions.Event{}, false, err
		}
		e := w.Event
		if err := c.complete(held, &e); err != nil {
			return subscriptions.Event{}, false, err
		}
		if time.Since(began) < maxReadTime {
			return e, true, nil
		}
	}
}

// place returns a hash of the url and the secret. If it has changed, a wait that the subscriber has asked for no
// longer applies. It has too few bytes to guess the secret by.
func (c *courier) place() string {
	return hex.EncodeToString(signatureOf([]byte(c.subscription.Secret), c.subscription.URL, nil)[:6])
}

// request makes the signed request that posts a body.
func (c *courier) request(ctx context.Context, id string, body []byte, now time.Time) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.subscription.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the url can't be used")
	}
	key, _ := subscriptions.Key(c.subscription.Secret) // the configuration was checked
	stamp := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", c.Agent)
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(signatureOf(key, id+"."+stamp+".", body)))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(signatureOf([]byte(c.subscription.Secret), "", body)))
	return r, nil
}

func signatureOf(key []byte, before string, body []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(before))
	m.Write(body)
	return m.Sum(nil)
}

// complete adds to an event what is not stored with it: the name of a tool and, if the subscription asks for texts, what
// was said.
func (c *courier) complete(ctx context.Context, e *subscriptions.Event) (err error) {
	if e.Data.Tool == "" {
		if e.Data.Tool, err = c.Table.Tool(ctx, *e); err != nil {
			return err
		}
	}
	if !c.subscription.Text {
		return nil
	}
	text := ""
	if e.Type == subscriptions.AskOpened || e.Type == subscriptions.AskDecided {
		text, err = c.askText(ctx, *e)
	} else {
		text, err = c.Table.Words(ctx, *e)
	}
	if err != nil {
		return err
	}
	text = c.Redact(text)
	e.Data.Text = posting.First(text, maxText)
	e.Data.Cut = e.Data.Text != text
	return nil
}

// askText returns what people are asked; for an event that says that the ask is decided, the answer to a question, or
// the reason for an approval or a denial. It returns "" if the ask was erased.
func (c *courier) askText(ctx context.Context, e subscriptions.Event) (string, error) {
	ask, err := c.Ask(ctx, e.Data.ID)
	switch {
	case errors.Is(err, bus.ErrNoAsk):
		return "", nil
	case err != nil:
		return "", err
	case e.Type == subscriptions.AskDecided && ask.Kind == bus.AskQuestion:
		return ask.Answer.Text, nil
	case e.Type == subscriptions.AskDecided:
		return ask.Answer.Reason, nil
	case ask.Kind == bus.AskQuestion:
		return ask.Question, nil
	}
	return ask.Shown, nil
}
