package subscriptions

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/sessions/subscriptions"
)

// The waits grow to five minutes.
func TestWaitsGrow(t *testing.T) {
	for tries, length := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute} {
		for range 20 {
			if got := waitAfter(tries); got < length/2 || got > length {
				t.Errorf("after %d attempts the wait is %s", tries, got)
			}
		}
	}
}

// A subscriber can ask for a wait in seconds or by a time, an hour at most.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "x": 0, "-5": 0, "7": 7 * time.Second, "86400": time.Hour, "99999999999999999999": 0, "Wed, 02 Jan 2030 03:05:05 GMT": time.Minute, "Wed, 02 Jan 2030 03:00:00 GMT": 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q asks for %s, want %s", header, got, want)
		}
	}
}

// A secret as the Standard Webhooks write it is decoded.
func TestKey(t *testing.T) {
	for secret, want := range map[string]string{"plain": "plain", "whsec_" + base64.StdEncoding.EncodeToString([]byte("raw")): "raw", "whsec_?": "whsec_?"} {
		if got := string(key(secret)); got != want {
			t.Errorf("%q is %q", secret, got)
		}
	}
}

// What owners read of a failed request does not show its URL.
func TestProblemsShowNoURL(t *testing.T) {
	c := &courier{Poster: &Poster{Config: Config{Redact: func(s string) string { return s }}}}
	if got := c.plain(&url.Error{Op: "Post", URL: "https://x/?key=hunter2", Err: errors.New("connection refused")}); got != "connection refused" {
		t.Errorf("it reads %q", got)
	}
}

// Owners hear of a subscriber that accepts nothing, and of events that were dropped.
func TestConcerns(t *testing.T) {
	s := subscriptions.State{Name: "a", Waiting: 7, Problem: "HTTP 500"}
	if got := concernsAbout(s, time.Minute); len(got) > 0 {
		t.Errorf("of one that is well: %+v", got)
	}
	s.Failing, s.Dropped, s.DroppedAt = time.Now(), 12, time.Now()
	got := concernsAbout(s, time.Minute)
	if len(got) != 2 || got[0].TellAfter != time.Minute || !strings.Contains(got[0].Text, "HTTP 500") || !strings.Contains(got[0].Text, "waiting: 7") || got[1].Count != 12 || got[0].ID == got[1].ID {
		t.Errorf("it is %+v", got)
	}
	s.DroppedAt = time.Now().Add(-25 * time.Hour)
	if got := concernsAbout(s, time.Minute); len(got) != 1 {
		t.Errorf("a day later it is %+v", got)
	}
}
