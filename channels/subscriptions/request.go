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
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/bus"
	"parley/sessions/subscriptions"
	"parley/tools/plainjson"
)

const (
	answerTime   = 10 * time.Second // how long a subscriber may take to answer
	longestAfter = time.Hour        // the longest wait that a subscriber can ask for
	maxText      = 64 << 10         // how much of a text an event has
	maxAnswer    = 64 << 10         // how much of an answer is read, so that its connection can be used again
	maxHeaders   = 64 << 10
)

// newClient makes the client for all requests. It verifies certificates, and follows no redirect: events go only where
// the operator says.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes, t.DisableCompression = maxHeaders, true
	return &http.Client{
		Transport: t, Timeout: answerTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A refusal says why an event was not accepted.
type refusal struct {
	problem string
	after   time.Duration // the wait that the subscriber asks for; 0 for none
}

// A message is what is posted.
type message struct {
	ID        string             `json:"id"`
	Type      string             `json:"type"`
	Timestamp time.Time          `json:"timestamp"`
	Data      subscriptions.Data `json:"data"`
}

// post posts an event, and returns why it was not accepted; nil if it was. An error means that it was not posted.
func (c *courier) post(held context.Context, e subscriptions.Event) (*refusal, error) {
	if err := c.complete(held, &e); err != nil {
		return nil, err
	}
	body, err := plainjson.Marshal(message{e.ID, e.Type, e.At.UTC(), e.Data})
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	// A request that has begun is finished even if the process is told to end: otherwise the event would be posted twice.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(held), answerTime)
	defer cancel()
	r, err := c.request(ctx, e.ID, body, time.Now())
	if err != nil {
		return nil, err
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return &refusal{problem: c.plain(err)}, nil
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // only its status matters
	_ = answer.Body.Close()
	if answer.StatusCode/100 == 2 {
		return nil, nil
	}
	why := &refusal{problem: "HTTP " + strconv.Itoa(answer.StatusCode), after: retryAfter(answer.Header.Get("Retry-After"), time.Now())}
	if answer.StatusCode/100 == 3 {
		why.problem += textRedirect
	}
	return why, nil
}

// request makes the signed request that posts a body.
func (c *courier) request(ctx context.Context, id string, body []byte, now time.Time) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.to.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the url can't be used")
	}
	stamp := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", c.Agent)
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac(key(c.to.Secret), id+"."+stamp+".", body)))
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac([]byte(c.to.Secret), "", body)))
	return r, nil
}

// key returns the bytes of a secret: those that whsec_ and their Base64 stand for, or else its characters.
func key(secret string) []byte {
	if coded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if raw, err := base64.StdEncoding.DecodeString(coded); err == nil {
			return raw
		}
	}
	return []byte(secret)
}

func mac(key []byte, before string, body []byte) []byte {
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
	if !c.to.Text {
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
	e.Data.Text = c.Redact(text)
	if len(e.Data.Text) > maxText {
		end := maxText
		for !utf8.RuneStart(e.Data.Text[end]) {
			end--
		}
		e.Data.Text, e.Data.Cut = e.Data.Text[:end], true
	}
	return nil
}

// askText returns what people are asked or, once they have answered a question, the answer; "" if it was erased.
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

// plain returns what kept a request from being answered, without its URL, which may have secrets.
func (c *courier) plain(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		if u.Timeout() {
			return fmt.Sprintf(textNoAnswer, answerTime)
		}
		err = u.Err
	}
	return c.Redact(err.Error())
}

// retryAfter returns the wait that a Retry-After header asks for; 0 for none.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return min(max(0, time.Duration(min(seconds, 1<<20))*time.Second), longestAfter)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(0, at.Sub(now)), longestAfter)
	}
	return 0
}
