//go:build linux

package mcp_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/pins"
	"parley/tools/mcp/signin"
	"parley/tools/mcp/signin/signintest"
)

// A logBuffer holds a log, and can be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A service that requires sign-in has no tools until somebody signs in, and reports that once. A token that has expired
// is renewed during a call. If that fails, the model is told what to do, and an owner is told again.
func TestAServiceThatRequiresSignIn(t *testing.T) {
	server := newServer("on the network")
	auth, web := signintest.New(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	signIn := signInOver(&memory{notes: map[[2]string]string{}})
	var log logBuffer
	var asked atomic.Int32
	s := newFixture(t, func(c *mcp.Config) {
		c.SignIn, c.Log, c.Limits.Backoff = signIn, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), time.Millisecond
		c.SignInNeeded = func(context.Context, string) { asked.Add(1) }
	}, mcp.Server{Name: "it", URL: auth.URL + "/mcp"})
	waitFor(t, "an owner to be asked", func() bool { return asked.Load() == 1 })
	if st := s.States()[0]; !wantsSignIn(st.Err) || st.Reachable || len(st.Tools) > 0 || !strings.Contains(st.Err.Error(), "parley mcp login it") {
		t.Errorf("it stands so: %+v", st)
	}
	if err := browse(t.Context(), s.Servers, signIn); err != nil {
		t.Fatal(err)
	}
	if got := s.call("s1", "it__echo", `{"text":"hello"}`); got != "hello" {
		t.Errorf("echo gave %q", got)
	}
	if got := s.call("s1", "it__headers", `{}`); got != "asked with Bearer [redacted]" {
		t.Errorf("it says %q", got)
	}
	old := signIn.Tokens("it")[0]
	auth.Expire(time.Hour)
	if got := s.call("s1", "it__echo", `{"text":"again"}`); got != "again" {
		t.Errorf("with a token that is over echo gave %q", got)
	}
	if good, reused := auth.Refreshes(); good != 1 || reused != 0 {
		t.Errorf("it was renewed %d times, and %d times with what was used", good, reused)
	}
	now := signIn.Tokens("it")[0]
	if got := s.call("s1", "it__echo", `{"text":"`+old+` and `+now+`"}`); old == now || got != "[redacted] and [redacted]" {
		t.Errorf("of the tokens before and after it was renewed echo gave %q", got)
	}
	secrets := auth.Secrets()
	auth.Revoke()
	s.wantFailure("s1", "it__echo", `{"text":"x"}`, tools.PermissionDenied, "nothing was done", "parley mcp login it")
	waitFor(t, "an owner to be asked again", func() bool { return asked.Load() == 2 })
	if err := browse(t.Context(), s.Servers, signIn); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it to work again", func() bool {
		_, err := s.tryCall(t.Context(), "s1", "it__echo", `{"text":"x"}`)
		return err == nil
	})
	for _, secret := range append(secrets, auth.Secrets()...) {
		if strings.Contains(log.String(), secret) {
			t.Error("a token is in the log")
		}
	}
}

// signInOver returns a sign-in client with a store.
func signInOver(kept *memory) *signin.Client {
	var alone sync.Mutex
	return signin.New(signin.Config{
		Store: kept, Redirect: func(string) string { return "http://127.0.0.1:1/callback" },
		RunAlone: func(ctx context.Context, _ string, do func(context.Context) error) error {
			alone.Lock()
			defer alone.Unlock()
			return do(ctx)
		},
	})
}

// After somebody has signed in at one process, the other processes of the fleet use that token.
func TestSignInAtAnotherProcess(t *testing.T) {
	server := newServer("on the network")
	auth, web := signintest.New(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	kept := &memory{notes: map[[2]string]string{}}
	process := func() (*fixture, *signin.Client) {
		signIn := signInOver(kept)
		return newFixture(t, func(c *mcp.Config) {
			// Without the notification it would not list the tools again in this test.
			c.Pins, c.SignIn, c.Shared, c.Limits.FollowInterval, c.Limits.Backoff = pins.New(kept), signIn, true, 10*time.Millisecond, time.Hour
		}, mcp.Server{Name: "it", URL: auth.URL + "/mcp"}), signIn
	}
	here, signIn := process()
	elsewhere, _ := process()
	for _, s := range []*fixture{here, elsewhere} {
		waitFor(t, "it to be known that somebody has to sign in", func() bool { return wantsSignIn(s.States()[0].Err) })
	}
	if err := browse(t.Context(), here.Servers, signIn); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*fixture{here, elsewhere} {
		if got := s.call("s", "it__echo", `{"text":"hello"}`); got != "hello" {
			t.Errorf("echo gave %q", got)
		}
	}
}
