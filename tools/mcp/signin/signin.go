// Package signin signs in to MCP servers that require it, with OAuth, and stores the tokens that it gets.
//
// Begin finds out where to sign in and makes the address that an owner opens in a browser; Finish takes the address
// at which the browser ended. The whole fleet shares what is stored: any process may finish a sign-in that another
// has begun, and one process at a time renews a token. No error contains a token, code or secret.
//
// The files: signin.go signs in, discovery.go finds out where, tokens.go stores and renews the tokens, and place.go
// decides which addresses they may connect to.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"parley/tools/plainjson"
)

// A Server is a service that may require somebody to sign in.
type Server struct {
	Name string
	URL  string
	// ClientID and ClientSecret are the credentials that identify this program to the server's authorization
	// server, if the operator has registered it there. If ClientID is "", the program registers itself.
	ClientID     string
	ClientSecret string
}

// A Store stores short texts for all processes. The key of each is a subject, which names a kind of note, and the
// thing that the note is about.
type Store interface {
	// SetNote replaces the stored value; "" removes it.
	SetNote(ctx context.Context, subject, about, value string) error
	// SetNoteOnce stores a value unless there is one, and returns the stored one.
	SetNoteOnce(ctx context.Context, subject, about, value string) (kept string, err error)
	// Noted returns all values with a subject, keyed by what they are about.
	Noted(ctx context.Context, subject string) (map[string]string, error)
}

// The subjects under which sign-ins are stored.
const (
	loginsSubject     = "mcp-login"     // about SERVER: its tokens
	pendingSubject    = "mcp-signing"   // about the hash of a state, the random text that matches an answer to its sign-in: the sign-in that was begun
	spentSubject      = "mcp-signed"    // about the hash of a state: that it was used
	challengesSubject = "mcp-challenge" // about SERVER: the headers in which it said that somebody has to sign in
)

// Config holds what a Client needs.
type Config struct {
	Store Store
	// RunAlone calls do, and ensures that meanwhile no other process does so under the same name.
	RunAlone func(ctx context.Context, name string, do func(ctx context.Context) error) error
	// Redirect returns the address at which the browser ends after a sign-in to a server.
	Redirect func(server string) string
	// ClientIDURL is the address of a document that describes this program; "" if there is none. Authorization
	// servers that support such documents use the address as the program's client id.
	ClientIDURL string
	// SignInTimeout is how long a sign-in may take; zero means ten minutes.
	SignInTimeout time.Duration
}

// A Client signs in to servers and stores their tokens. It may be used by several goroutines at once.
type Client struct {
	cfg  Config
	http *http.Client // follows redirects of GET requests only

	mu    sync.Mutex
	known map[string]knownLogin // by server
}

// New makes a Client.
func New(cfg Config) *Client {
	if cfg.SignInTimeout <= 0 {
		cfg.SignInTimeout = 10 * time.Minute
	}
	return &Client{cfg: cfg, http: newClient(), known: map[string]knownLogin{}}
}

// Errors of Finish that are caused by the person who signs in, or who enters the address.
var (
	// ErrState says that the state in an address belongs to no sign-in begun here, or was already used, or that the
	// sign-in took too long.
	ErrState = errors.New("this sign-in didn't begin here, was already used, or took too long: begin again with parley mcp login")
	// ErrRefused says that the authorization server, or the person whom it asked for consent, has
	// refused.
	ErrRefused = errors.New("the sign-in was refused")
)

// A BegunSignIn is a sign-in that somebody has to continue in a browser.
type BegunSignIn struct {
	ID     string    // identifies the sign-in in calls of IsDone
	URL    string    // the address to open
	EndURL string    // the address at which the browser ends, without its query
	Until  time.Time // when it expires
}

// A pendingSignIn is what is stored about a sign-in until it is finished.
type pendingSignIn struct {
	Server   string    `json:"server"`
	Until    time.Time `json:"until"`
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	NamesISS bool      `json:"names_iss,omitempty"` // the authorization server names itself in its answer
	Login    login     `json:"login"`               // the login as it will be stored, without tokens
}

// Begin prepares a sign-in to a server. The server must name issuer as its authorization server or, if issuer is
// "", the one at which somebody signed in to it before; otherwise Begin returns *IssuerError. It returns ErrNoSignInNeeded if
// the server requires no sign-in.
func (d *Client) Begin(ctx context.Context, s Server, issuer string) (BegunSignIn, error) {
	found, err := d.discover(ctx, s)
	if err != nil {
		return BegunSignIn{}, err
	}
	if err := d.checkPinned(ctx, s, found.server.Issuer, issuer); err != nil {
		return BegunSignIn{}, err
	}
	redirect := d.cfg.Redirect(s.Name)
	client, err := d.clientFor(ctx, s, found, redirect)
	if err != nil {
		return BegunSignIn{}, err
	}
	scopes, err := d.scopesToRequest(ctx, s, found)
	if err != nil {
		return BegunSignIn{}, err
	}
	state := rand.Text()
	id := hash(state)
	one := pendingSignIn{
		Server: s.Name, Until: time.Now().Add(d.cfg.SignInTimeout), Verifier: oauth2.GenerateVerifier(), Redirect: redirect,
		NamesISS: found.server.AuthorizationResponseIssParameterSupported,
		Login: login{
			ID: id, For: s.URL, Issuer: found.server.Issuer, Resource: found.resource, TokenURL: found.server.TokenEndpoint,
			ClientID: client.id, ClientSecret: client.secret, Style: client.style, Scopes: scopes,
		},
	}
	config := one.Login.config()
	config.RedirectURL, config.Endpoint.AuthURL = redirect, found.server.AuthorizationEndpoint
	if err := d.sweep(ctx); err != nil {
		return BegunSignIn{}, err
	}
	if err := d.storeJSON(ctx, pendingSubject, id, one); err != nil {
		return BegunSignIn{}, err
	}
	address := config.AuthCodeURL(state, oauth2.S256ChallengeOption(one.Verifier), oauth2.SetAuthURLParam("resource", found.resource))
	return BegunSignIn{ID: id, URL: address, EndURL: redirect, Until: one.Until}, nil
}

// An IssuerError says that a server names another authorization server than the expected one. Nothing was sent to
// that one except a request for its description.
type IssuerError struct {
	Server   string
	Expected string
	Named    string
	Asked    bool // somebody said which one to expect
}

// Error says which authorization server the MCP server names, and how the operator can accept it.
func (e *IssuerError) Error() string {
	expected := "and those who signed in before did so at "
	if e.Asked {
		expected = "and not "
	}
	return fmt.Sprintf("the server %s has you sign in at %s, %s%s. Ask who runs it whether that is right: parley mcp login %s --issuer %s then agrees",
		e.Server, clip(e.Named), expected, clip(e.Expected), e.Server, clip(e.Named))
}

// checkPinned returns an *IssuerError if a server names another authorization server than the expected one, or than
// the one at which somebody signed in before.
func (d *Client) checkPinned(ctx context.Context, s Server, named, expected string) error {
	asked := expected != ""
	if !asked {
		before, err := d.load(ctx, s.Name)
		if err != nil {
			return err
		}
		if before.For == s.URL {
			expected = before.Issuer
		}
	}
	if expected == "" || strings.TrimRight(expected, "/") == strings.TrimRight(named, "/") {
		return nil
	}
	return &IssuerError{Server: s.Name, Expected: expected, Named: named, Asked: asked}
}

// Finish completes a sign-in; answer is the query of the address at which the browser ended. It uses up the state
// in the answer, so that nobody can use it twice. Its errors are ErrState, ErrRefused, or the reason why the
// authorization server could not be asked.
func (d *Client) Finish(ctx context.Context, server string, answer url.Values) error {
	one, err := d.useUp(ctx, hash(answer.Get("state")))
	if err != nil {
		return err
	}
	if one.Server != server || time.Now().After(one.Until) {
		return ErrState
	}
	if code := answer.Get("error"); code != "" {
		return fmt.Errorf("%w: %s", ErrRefused, clip(code+" "+answer.Get("error_description")))
	}
	if err := one.checkIssuer(answer.Get("iss")); err != nil {
		return err
	}
	if answer.Get("code") == "" {
		return fmt.Errorf("%w: the address contains no code", ErrRefused)
	}
	config := one.Login.config()
	config.RedirectURL = one.Redirect
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, d.guardedClient(one.Login.For)), answer.Get("code"),
		oauth2.VerifierOption(one.Verifier), oauth2.SetAuthURLParam("resource", one.Login.Resource))
	if err != nil {
		if told, refused := asRefusal(err); refused {
			return fmt.Errorf("%w: %s", ErrRefused, told)
		}
		return fmt.Errorf("ask the authorization server for a token: %w", withoutSecrets(err))
	}
	if err := d.saveLogin(ctx, server, one.Login.withToken(token)); err != nil {
		return err
	}
	return d.cfg.Store.SetNote(ctx, challengesSubject, server, "")
}

// checkIssuer returns an error if the answer comes from another authorization server than the one at which the
// sign-in was begun (RFC 9207); iss is the server named in the answer.
func (s pendingSignIn) checkIssuer(iss string) error {
	if iss == "" && !s.NamesISS || iss == s.Login.Issuer {
		return nil
	}
	return fmt.Errorf("%w: another authorization server has answered than was asked", ErrRefused)
}

// useUp returns a sign-in that was begun, and ensures that no further call with the same state gets it.
func (d *Client) useUp(ctx context.Context, id string) (one pendingSignIn, err error) {
	begun, err := d.cfg.Store.Noted(ctx, pendingSubject)
	if err != nil {
		return one, fmt.Errorf("read what was begun: %w", err)
	}
	raw, ok := begun[id]
	if !ok {
		return one, ErrState
	}
	if err := json.Unmarshal([]byte(raw), &one); err != nil {
		return one, fmt.Errorf("read what was begun: %w", err)
	}
	mine := time.Now().UTC().Format(time.RFC3339) + " " + rand.Text()
	kept, err := d.cfg.Store.SetNoteOnce(ctx, spentSubject, id, mine)
	if err != nil {
		return one, fmt.Errorf("note that it is used: %w", err)
	}
	if kept != mine {
		return one, ErrState
	}
	if err := d.cfg.Store.SetNote(ctx, pendingSubject, id, ""); err != nil {
		return one, fmt.Errorf("note that it is used: %w", err)
	}
	return one, nil
}

// sweep deletes the records of sign-ins that were begun too long ago.
func (d *Client) sweep(ctx context.Context) error {
	begun, err := d.cfg.Store.Noted(ctx, pendingSubject)
	if err != nil {
		return fmt.Errorf("read what was begun: %w", err)
	}
	for id, raw := range begun {
		var one pendingSignIn
		if json.Unmarshal([]byte(raw), &one) == nil && time.Now().Before(one.Until.Add(time.Hour)) {
			continue
		}
		if err := d.cfg.Store.SetNote(ctx, pendingSubject, id, ""); err != nil {
			return fmt.Errorf("forget what was begun: %w", err)
		}
	}
	used, err := d.cfg.Store.Noted(ctx, spentSubject)
	if err != nil {
		return fmt.Errorf("read what was used: %w", err)
	}
	for id, when := range used {
		at, err := time.Parse(time.RFC3339, when[:min(len(when), len("2006-01-02T15:04:05Z"))])
		if begun[id] != "" || err == nil && time.Since(at) < time.Hour {
			continue
		}
		if err := d.cfg.Store.SetNote(ctx, spentSubject, id, ""); err != nil {
			return fmt.Errorf("forget what was used: %w", err)
		}
	}
	return nil
}

// IsDone reports whether a sign-in is finished, no matter which process finished it.
func (d *Client) IsDone(ctx context.Context, server, id string) (bool, error) {
	l, err := d.load(ctx, server)
	return l.ID == id && l.Access != "", err
}

// storeJSON stores a value, encoded as JSON, with a subject and what it is about.
func (d *Client) storeJSON(ctx context.Context, subject, about string, value any) error {
	raw, err := plainjson.Marshal(value)
	if err != nil {
		return err
	}
	return d.cfg.Store.SetNote(ctx, subject, about, string(raw))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
