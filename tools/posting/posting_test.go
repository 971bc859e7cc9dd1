package posting_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley/tools/posting"
)

func same(text string) string { return text }

// What is told of a failed request does not show its URL.
func TestProblemsShowNoURL(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	if got := posting.Problem(&url.Error{Op: "Post", URL: "https://x/?key=hunter2", Err: refused}, time.Second, same); got != "dial: connection refused" {
		t.Errorf("it reads %q", got)
	}
}

// Nor does it show what the other side has written, and it is short.
func TestProblemsShowNoAnswer(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New(`net/http: malformed HTTP status code "what was posted"`), "Parley got no answer that it can read"},
		{&net.OpError{Op: "dial", Err: errors.New(strings.Repeat("ä", 300))}, "dial: " + strings.Repeat("ä", 147)},
	} {
		if got := posting.Problem(&url.Error{Op: "Post", URL: "https://x/", Err: c.err}, time.Second, same); got != c.want {
			t.Errorf("it reads %q, want %q", got, c.want)
		}
	}
}

// Requests without TLS reach only this machine, whatever a name stands for, and no proxy.
func TestALocalTransportReachesOnlyThisMachine(t *testing.T) {
	local := posting.NewLocalTransport()
	if local.Proxy != nil {
		t.Error("they go through a proxy")
	}
	c := posting.NewClient(local, time.Minute)
	if _, err := c.Get("http://192.0.2.1/"); !errors.Is(err, posting.ErrElsewhere) || !strings.Contains(posting.Problem(err, time.Minute, same), "write https://") {
		t.Errorf("another machine: %v", err)
	}
	here := httptest.NewServer(http.RedirectHandler("http://192.0.2.1/", http.StatusFound))
	defer here.Close()
	if answer, err := c.Get(here.URL); err != nil || answer.StatusCode != http.StatusFound {
		t.Errorf("this machine: %v", err)
	}
}

// A wait is a number of seconds or a date, and whoever asks for too long a wait gets the longest.
func TestTheWaitThatAnAnswerAsksFor(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-7": 0, "1.5": 0, "soon": 0, "3600": time.Minute, "9223372036854775807": time.Minute, "99999999999999999999": 0,
		"Sat, 01 Aug 2026 12:00:07 GMT": 7 * time.Second, "Sat, 01 Aug 2026 11:59:59 GMT": 0, "Sat, 01 Aug 2027 12:00:00 GMT": time.Minute,
	} {
		if got := posting.RetryAfter(http.Header{"Retry-After": {header}}, now, time.Minute); got != want {
			t.Errorf("%q asks for %v, want %v", header, got, want)
		}
	}
}
