// Package signin signs in to MCP servers that want it, with OAuth, and keeps the tokens that it is given.
//
// Begin finds out where one signs in and makes the address that an owner opens; Finish
// takes the address at which their browser ended. What is kept is kept once for the whole
// fleet: any process may finish what another has begun, and one at a time renews a token.
// No token, code or secret is in an error.
//
// The files: signin.go is signing in, discovery.go finds out where, tokens.go has what came
// of it, and place.go is how all of them reach the network.
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
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// A Server is a service that may want somebody to be signed in.
type Server struct {
	Name string
	URL  string
	// ClientID and ClientSecret are what its authorization server knows this program by,
	// where the operator has registered it there; "" has it registered by itself.
	ClientID     string
	ClientSecret string
}

// A Store keeps short texts by a subject and what they are about, once for all processes.
type Store interface {
	// Note keeps a value in place of the one before; "" removes it.
	Note(ctx context.Context, subject, about, value string) error
	// NoteFirst keeps a value unless there is one, and returns the one that is kept.
	NoteFirst(ctx context.Context, subject, about, value string) (kept string, err error)
	// Noted gives all values of a subject, by what they are about.
	Noted(ctx context.Context, subject string) (map[string]string, error)
}

// The subjects under which it is kept.
const (
	logins     = "mcp-login"     // about SERVER: its tokens
	pending    = "mcp-signing"   // about the hash of a state: what has begun
	spent      = "mcp-signed"    // about the hash of a state: that somebody has used it
	challenges = "mcp-challenge" // about SERVER: what it said when it wanted somebody
)

// Config is what a Desk works with.
type Config struct {
	Store Store
	// Alone does something while no other process does it under the same name.
	Alone func(ctx context.Context, name string, do func(ctx context.Context) error) error
	// Redirect is the address at which the browser ends that has signed in to a server.
	Redirect func(server string) string
	// Page is the address at which authorization servers can read who asks; "" is none.
	Page string
	// Valid is how long there is time to sign in: ten minutes.
	Valid time.Duration
}

// A Desk signs in. It may be used by many at once.
type Desk struct {
	cfg  Config
	http *http.Client // follows no requests but those that only read

	mu    sync.Mutex
	known map[string]known // by server
}

// New makes a Desk.
func New(cfg Config) *Desk {
	if cfg.Valid <= 0 {
		cfg.Valid = 10 * time.Minute
	}
	return &Desk{cfg: cfg, http: newClient(), known: map[string]known{}}
}

// The errors of Finish that are whoever's who has come with the address.
var (
	// ErrState says that nothing was begun under a state, that it was used, or is too old.
	ErrState = errors.New("this was not begun here, was used already, or has taken longer than it may: begin again with parley mcp login")
	// ErrRefused says that the authorization server, or who was asked there, has refused.
	ErrRefused = errors.New("the sign-in was refused")
)

// A Begun is a sign-in that somebody has to go on with in a browser.
type Begun struct {
	ID    string    // names it to Done
	URL   string    // to open
	Ends  string    // the address, without what is added to it, at which the browser ends
	Until time.Time // when it is too late
}

// A signing is what is kept of a sign-in until it is finished.
type signing struct {
	Server   string    `json:"server"`
	Until    time.Time `json:"until"`
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	NamesISS bool      `json:"names_iss,omitempty"` // the authorization server says who it is
	Login    login     `json:"login"`               // as it will be, without tokens
}

// Begin prepares a sign-in to a server.
func (d *Desk) Begin(ctx context.Context, s Server) (Begun, error) {
	found, err := d.discover(ctx, s)
	if err != nil {
		return Begun{}, err
	}
	redirect := d.cfg.Redirect(s.Name)
	client, err := d.client(ctx, s, found, redirect)
	if err != nil {
		return Begun{}, err
	}
	scopes, err := d.scopes(ctx, s, found)
	if err != nil {
		return Begun{}, err
	}
	state := rand.Text()
	id := hash(state)
	one := signing{
		Server: s.Name, Until: time.Now().Add(d.cfg.Valid), Verifier: oauth2.GenerateVerifier(), Redirect: redirect,
		NamesISS: found.server.AuthorizationResponseIssParameterSupported,
		Login: login{
			ID: id, For: s.URL, Issuer: found.server.Issuer, Resource: found.resource, TokenURL: found.server.TokenEndpoint,
			ClientID: client.id, ClientSecret: client.secret, Style: client.style, Scopes: scopes,
		},
	}
	config := one.Login.config()
	config.RedirectURL, config.Endpoint.AuthURL = redirect, found.server.AuthorizationEndpoint
	if err := d.sweep(ctx); err != nil {
		return Begun{}, err
	}
	if err := d.note(ctx, pending, id, one); err != nil {
		return Begun{}, err
	}
	address := config.AuthCodeURL(state, oauth2.S256ChallengeOption(one.Verifier), oauth2.SetAuthURLParam("resource", found.resource))
	return Begun{ID: id, URL: address, Ends: redirect, Until: one.Until}, nil
}

// Finish ends a sign-in with what stands in the address at which the browser ended. What
// it was begun under is used up by that. Its errors are ErrState, ErrRefused, or why the
// authorization server could not be asked.
func (d *Desk) Finish(ctx context.Context, server string, answer url.Values) error {
	one, err := d.take(ctx, hash(answer.Get("state")))
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
		return fmt.Errorf("%w: the address holds no code", ErrRefused)
	}
	config := one.Login.config()
	config.RedirectURL = one.Redirect
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, d.guarded(one.Login.For)), answer.Get("code"),
		oauth2.VerifierOption(one.Verifier), oauth2.SetAuthURLParam("resource", one.Login.Resource))
	if err != nil {
		if told, refused := refusal(err); refused {
			return fmt.Errorf("%w: %s", ErrRefused, told)
		}
		return fmt.Errorf("ask the authorization server for a token: %w", plain(err))
	}
	if err := d.keep(ctx, server, one.Login.with(token)); err != nil {
		return err
	}
	return d.cfg.Store.Note(ctx, challenges, server, "")
}

// checkIssuer looks who has answered (RFC 9207).
func (s signing) checkIssuer(iss string) error {
	if iss == "" && !s.NamesISS || iss == s.Login.Issuer {
		return nil
	}
	return fmt.Errorf("%w: another authorization server has answered than was asked", ErrRefused)
}

// take uses up what was begun: of all who come with the same state one is given it.
func (d *Desk) take(ctx context.Context, id string) (one signing, err error) {
	begun, err := d.cfg.Store.Noted(ctx, pending)
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
	kept, err := d.cfg.Store.NoteFirst(ctx, spent, id, mine)
	if err != nil {
		return one, fmt.Errorf("note that it is used: %w", err)
	}
	if kept != mine {
		return one, ErrState
	}
	if err := d.cfg.Store.Note(ctx, pending, id, ""); err != nil {
		return one, fmt.Errorf("note that it is used: %w", err)
	}
	return one, nil
}

// sweep forgets what was begun and is too old.
func (d *Desk) sweep(ctx context.Context) error {
	begun, err := d.cfg.Store.Noted(ctx, pending)
	if err != nil {
		return fmt.Errorf("read what was begun: %w", err)
	}
	for id, raw := range begun {
		var one signing
		if json.Unmarshal([]byte(raw), &one) == nil && time.Now().Before(one.Until.Add(time.Hour)) {
			continue
		}
		if err := d.cfg.Store.Note(ctx, pending, id, ""); err != nil {
			return fmt.Errorf("forget what was begun: %w", err)
		}
	}
	used, err := d.cfg.Store.Noted(ctx, spent)
	if err != nil {
		return fmt.Errorf("read what was used: %w", err)
	}
	for id, when := range used {
		at, err := time.Parse(time.RFC3339, when[:min(len(when), len("2006-01-02T15:04:05Z"))])
		if begun[id] != "" || err == nil && time.Since(at) < time.Hour {
			continue
		}
		if err := d.cfg.Store.Note(ctx, spent, id, ""); err != nil {
			return fmt.Errorf("forget what was used: %w", err)
		}
	}
	return nil
}

// Done tells whether a sign-in is finished, whoever has finished it.
func (d *Desk) Done(ctx context.Context, server, id string) (bool, error) {
	l, err := d.load(ctx, server)
	return l.ID == id && l.Access != "", err
}

func (d *Desk) note(ctx context.Context, subject, about string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return d.cfg.Store.Note(ctx, subject, about, string(raw))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
