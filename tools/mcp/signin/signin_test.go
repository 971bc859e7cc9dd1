package signin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/tools/mcp/signin"
	"parley/tools/mcp/signin/signintest"
)

// A signInRig is an authorization server, and the configuration for signing in to the service behind it.
type signInRig struct {
	*signintest.Server
	t      *testing.T
	cfg    signin.Config
	server signin.Server
}

func newSignInRig(t *testing.T) *signInRig {
	t.Helper()
	s, web := signintest.New(http.NotFoundHandler())
	t.Cleanup(web.Close)
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	book, err := sqlbook.Open(t.Context(), filepath.Join(t.TempDir(), "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), book.Close()); err != nil {
			t.Error(err)
		}
	})
	return &signInRig{Server: s, t: t, server: signin.Server{Name: "notes", URL: s.URL + "/mcp"}, cfg: signin.Config{
		Store:    notesStore{book},
		Redirect: func(server string) string { return "http://127.0.0.1:7275/mcp/" + server + "/callback" },
		RunAlone: func(ctx context.Context, name string, do func(context.Context) error) error {
			held, release, err := b.Hold(ctx, name)
			if err != nil {
				return err
			}
			defer release()
			return do(held)
		},
	}}
}

// notesStore is a book in the form that a Client needs.
type notesStore struct{ channels.Notes }

func (n notesStore) Noted(ctx context.Context, subject string) (map[string]string, error) {
	all, err := n.AllNoted(ctx, subject)
	found := map[string]string{}
	for _, r := range all {
		found[r.About] = r.Value
	}
	return found, err
}

// browse begins a sign-in, and returns the query with which the browser ends.
func (r *signInRig) browse(d *signin.Client) (signin.BegunSignIn, url.Values) {
	r.t.Helper()
	begun, err := d.Begin(r.t.Context(), r.server, "")
	if err != nil {
		r.t.Fatal(err)
	}
	ends, err := signintest.Browse(begun.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	if !strings.HasPrefix(ends.String(), begun.EndURL+"?") {
		r.t.Errorf("the browser ends at %s, want %s", ends, begun.EndURL)
	}
	return begun, ends.Query()
}

// newSignedInClient returns a Client with which somebody has signed in.
func (r *signInRig) newSignedInClient() *signin.Client {
	r.t.Helper()
	d := signin.New(r.cfg)
	_, answer := r.browse(d)
	if err := d.Finish(r.t.Context(), "notes", answer); err != nil {
		r.t.Fatal(err)
	}
	return d
}

// isAccepted reports whether the service accepts a token.
func (r *signInRig) isAccepted(token string) bool {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.server.URL, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusNotFound // the service itself has no pages
}

// If a service names another authorization server than before, nobody is sent there to sign in until somebody accepts
// it.
func TestAnotherAuthorizationServerIsAgreedTo(t *testing.T) {
	r := newSignInRig(t)
	d := r.newSignedInClient()
	other, web := signintest.New(http.NotFoundHandler())
	t.Cleanup(web.Close)
	r.Name(other)
	var refused *signin.IssuerError
	for _, issuer := range []string{"", r.URL, "https://example.com"} {
		_, err := signin.New(r.cfg).Begin(t.Context(), r.server, issuer)
		if !errors.As(err, &refused) || refused.Named != other.URL || !strings.Contains(err.Error(), "mcp login notes --issuer "+other.URL) {
			t.Errorf("with the issuer %q it gives %v", issuer, err)
		}
	}
	r.Revoke() // a revoked login still belongs to that authorization server
	if token, err := d.Renew(t.Context(), r.server, d.Tokens("notes")[0]); token != "" || err != nil {
		t.Fatalf("after it was revoked: %q, %v", token, err)
	}
	if _, err := d.Begin(t.Context(), r.server, ""); !errors.As(err, &refused) || refused.Expected != r.URL {
		t.Errorf("after the login was over it gives %v", err)
	}
	if n := other.Registered(); n != 0 {
		t.Errorf("the other authorization server has %d clients", n)
	}
	for _, issuer := range []string{other.URL, ""} { // after it was accepted once, it is the expected one
		begun, err := d.Begin(t.Context(), r.server, issuer)
		if err != nil || !strings.HasPrefix(begun.URL, other.URL) {
			t.Fatalf("agreed to, it gives %s, %v", begun.URL, err)
		}
		ends, err := signintest.Browse(begun.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Finish(t.Context(), "notes", ends.Query()); err != nil {
			t.Fatal(err)
		}
	}
	r.server.URL = other.URL + "/mcp" // a service at another address is a different one
	r.Name(r.Server)
	if _, err := d.Begin(t.Context(), r.server, ""); errors.As(err, &refused) {
		t.Errorf("another service is held to the first one's: %v", err)
	}
}

// Somebody begins to sign in at one process; another finishes the sign-in, and a third has the token.
func TestSigningIn(t *testing.T) {
	r := newSignInRig(t)
	first, second, third := signin.New(r.cfg), signin.New(r.cfg), signin.New(r.cfg)
	if token, err := third.Token(t.Context(), r.server); token != "" || err != nil {
		t.Fatalf("before anybody has signed in there is a token, or %v", err)
	}
	begun, answer := r.browse(first)
	if done, err := first.IsDone(t.Context(), "notes", begun.ID); done || err != nil {
		t.Errorf("it is done before it is: %v", err)
	}
	if err := second.Finish(t.Context(), "notes", answer); err != nil {
		t.Fatal(err)
	}
	if done, err := first.IsDone(t.Context(), "notes", begun.ID); !done || err != nil {
		t.Errorf("it is not done: %v", err)
	}
	token, err := first.Token(t.Context(), r.server)
	if err != nil || !r.isAccepted(token) {
		t.Errorf("the token is not good, %v", err)
	}
	if err := first.Finish(t.Context(), "notes", answer); !errors.Is(err, signin.ErrState) {
		t.Errorf("the second time it ended with %v", err)
	}
	other := r.server
	other.URL += "/elsewhere"
	if token, err := signin.New(r.cfg).Token(t.Context(), other); token != "" || err != nil {
		t.Errorf("another address is given the token, or %v", err)
	}
}

// If several requests come with the same state at once, one of them succeeds.
func TestAStateCanBeUsedOnce(t *testing.T) {
	r := newSignInRig(t)
	_, answer := r.browse(signin.New(r.cfg))
	var wg sync.WaitGroup
	var in, refused atomic.Int32
	for range 10 {
		wg.Go(func() {
			switch err := signin.New(r.cfg).Finish(t.Context(), "notes", answer); {
			case err == nil:
				in.Add(1)
			case errors.Is(err, signin.ErrState):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if in.Load() != 1 || refused.Load() != 9 {
		t.Errorf("%d were let in, and %d refused", in.Load(), refused.Load())
	}
}

func TestSignInsThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*signInRig, url.Values)
		server string
		want   error
	}{
		"an unknown state":               {func(_ *signInRig, v url.Values) { v.Set("state", "x") }, "notes", signin.ErrState},
		"no state":                       {func(_ *signInRig, v url.Values) { v.Del("state") }, "notes", signin.ErrState},
		"another server's state":         {nil, "other", signin.ErrState},
		"another authorization server":   {func(_ *signInRig, v url.Values) { v.Set("iss", "https://evil.example.com") }, "notes", signin.ErrRefused},
		"nobody says who":                {func(_ *signInRig, v url.Values) { v.Del("iss") }, "notes", signin.ErrRefused},
		"who was asked has refused":      {func(_ *signInRig, v url.Values) { v.Set("error", "access_denied") }, "notes", signin.ErrRefused},
		"no code":                        {func(_ *signInRig, v url.Values) { v.Del("code") }, "notes", signin.ErrRefused},
		"a code that nobody has given":   {func(_ *signInRig, v url.Values) { v.Set("code", "x") }, "notes", signin.ErrRefused},
		"the authorization server fails": {func(r *signInRig, _ url.Values) { r.Break(true) }, "notes", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newSignInRig(t)
			d := signin.New(r.cfg)
			_, answer := r.browse(d)
			code := answer.Get("code")
			if tc.change != nil {
				tc.change(r, answer)
			}
			err := d.Finish(t.Context(), tc.server, answer)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("it ended with %v, want %v", err, tc.want)
			}
			if strings.Contains(fmt.Sprint(err), code) {
				t.Errorf("the code is in the error: %v", err)
			}
			if token, err := d.Token(t.Context(), r.server); token != "" || err != nil {
				t.Errorf("there is a token, or %v", err)
			}
		})
	}
}

func TestASignInThatTakesTooLong(t *testing.T) {
	r := newSignInRig(t)
	r.cfg.SignInTimeout = time.Nanosecond
	d := signin.New(r.cfg)
	_, answer := r.browse(d)
	if err := d.Finish(t.Context(), "notes", answer); !errors.Is(err, signin.ErrState) {
		t.Errorf("it ended with %v", err)
	}
}

// However many processes find that a token has expired, one of them renews it, once.
func TestATokenIsRenewedOnce(t *testing.T) {
	r := newSignInRig(t)
	old, err := r.newSignedInClient().Token(t.Context(), r.server)
	if err != nil {
		t.Fatal(err)
	}
	r.Expire(time.Hour)
	clients := []*signin.Client{signin.New(r.cfg), signin.New(r.cfg), signin.New(r.cfg)}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			token, err := clients[i%3].Renew(t.Context(), r.server, old)
			if err != nil || token == old || !r.isAccepted(token) {
				t.Errorf("the token is not good, %v", err)
			}
		})
	}
	wg.Wait()
	if good, reused := r.Refreshes(); good != 1 || reused != 0 {
		t.Errorf("it was renewed %d times, and %d times with what was used", good, reused)
	}
}

// A token that expires is renewed before the service refuses it.
func TestATokenThatEnds(t *testing.T) {
	r := newSignInRig(t)
	r.Expire(time.Second)
	d := r.newSignedInClient()
	r.Expire(time.Hour)
	for until := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		token, err := d.Token(t.Context(), r.server)
		if err != nil {
			t.Fatal(err)
		}
		if r.isAccepted(token) {
			break
		}
		if time.Now().After(until) {
			t.Fatal("what has ended is still given")
		}
	}
	if good, reused := r.Refreshes(); good != 1 || reused != 0 {
		t.Errorf("it was renewed %d times, and %d times with what was used", good, reused)
	}
}

// If renewing fails because the authorization server is down, the login is kept. If it refuses, the login is over, and
// somebody has to sign in again.
func TestATokenThatCannotBeRenewed(t *testing.T) {
	r := newSignInRig(t)
	d := r.newSignedInClient()
	old, err := d.Token(t.Context(), r.server)
	if err != nil {
		t.Fatal(err)
	}
	secrets := r.Secrets()
	r.Expire(time.Hour)
	r.Break(true)
	if _, err = d.Renew(t.Context(), r.server, old); err == nil {
		t.Fatal("a broken authorization server has renewed it")
	}
	for _, secret := range secrets {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("a token is in the error: %v", err)
		}
	}
	r.Break(false)
	if token, err := d.Renew(t.Context(), r.server, old); err != nil || !r.isAccepted(token) {
		t.Errorf("afterwards the token is not good, %v", err)
	}
	now, err := d.Token(t.Context(), r.server)
	if err != nil {
		t.Fatal(err)
	}
	r.Revoke()
	for range 2 {
		if token, err := d.Renew(t.Context(), r.server, now); token != "" || err != nil {
			t.Errorf("what is over is renewed, or %v", err)
		}
	}
	if token, err := signin.New(r.cfg).Token(t.Context(), r.server); token != "" || err != nil {
		t.Errorf("another process has a token, or %v", err)
	}
}

// A remote server can't make Parley send requests to this machine.
func TestAServerThatNamesThisMachine(t *testing.T) {
	r := newSignInRig(t)
	d := signin.New(r.cfg)
	evil := signin.Server{Name: "evil", URL: "https://mcp.example.com/mcp"}
	said := `Bearer resource_metadata="` + r.URL + `/.well-known/oauth-protected-resource/mcp"`
	if err := d.RecordWanted(t.Context(), evil, []string{said}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if begun, err := d.Begin(ctx, evil, ""); err == nil || !strings.Contains(err.Error(), "this machine") {
		t.Errorf("it gave %q, %v", begun.URL, err)
	}
}
