package stream_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
	"parley/channels/slack/stream"
)

// recordedCalls are the calls made to Slack's API, which gives the answers that a test has set.
type recordedCalls struct {
	made   []string
	refuse map[string]bool
}

func (c *recordedCalls) RoundTrip(r *http.Request) (*http.Response, error) {
	method := path.Base(r.URL.Path)
	c.made = append(c.made, method)
	body, status := `{"ok":true,"channel":"D7","ts":"1.1"}`, http.StatusOK
	if c.refuse[method] {
		body, status = "", http.StatusTooManyRequests
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"7"}}, Body: io.NopCloser(bytes.NewBufferString(body)), Request: r}, nil
}

// newOpenStream returns a stream that was started a moment ago.
func newOpenStream(t *testing.T) (*stream.Streams, *recordedCalls) {
	c := &recordedCalls{refuse: map[string]bool{}}
	api := slackgo.New("xoxb-x", slackgo.OptionHTTPClient(&http.Client{Transport: c}))
	s := stream.New(api, func(ctx context.Context, do func(context.Context) error) error {
		if do(ctx) != nil {
			return &channels.SendError{Fault: channels.Retry, RateLimited: true, RetryAfter: 7 * time.Second, Code: "ratelimited"}
		}
		return nil
	})
	if ts, err := s.Start(t.Context(), stream.Place{Chat: "D7", Thread: "1.0"}, channels.Growth{Text: "One"}); ts != "1.1" || err != nil {
		t.Fatal(ts, err)
	}
	return s, c
}

func grows(t *testing.T, s *stream.Streams, text string) bool {
	t.Helper()
	grown, err := s.Append(t.Context(), "D7", "1.1", channels.Growth{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return grown
}

// Slack ends a stream after five minutes, and what is appended later is lost. So the stream is ended earlier,
// and the message is continued by edits.
func TestAStreamIsEndedBeforeSlackEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := newOpenStream(t)
		time.Sleep(3 * time.Minute)
		if !grows(t, s, "One two") {
			t.Error("it does not grow for three minutes")
		}
		time.Sleep(90 * time.Second)
		if grows(t, s, "One two three") {
			t.Error("it grows after four and a half minutes")
		}
		if got := strings.Join(c.made, " "); got != "chat.startStream chat.appendStream" {
			t.Errorf("called %s", got)
		}
	})
}

// Nothing is appended to a stream that has ended, or may have ended.
func TestNothingIsAppendedAfterTheEnd(t *testing.T) {
	for _, limited := range []bool{false, true} {
		s, c := newOpenStream(t)
		c.refuse["chat.stopStream"] = limited
		if err := s.Stop(t.Context(), "D7", "1.1"); (err != nil) != limited {
			t.Fatal(err)
		}
		for range 2 {
			if grows(t, s, "One two") {
				t.Error("it grows after its end")
			}
		}
		if got := strings.Join(c.made, " "); got != "chat.startStream chat.stopStream" {
			t.Errorf("called %s", got)
		}
		c.refuse["chat.stopStream"] = false
		if err := s.Stop(t.Context(), "D7", "1.1"); err != nil {
			t.Error(err)
		}
		if n := strings.Count(strings.Join(c.made, " "), "stopStream"); limited && n != 2 || !limited && n != 1 {
			t.Errorf("ended %d times", n)
		}
	}
}
