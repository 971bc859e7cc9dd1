package signin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// A login is what is stored after somebody has signed in to a server: the tokens, and what is
// needed to renew them.
type login struct {
	ID           string           `json:"id"`  // the id of the sign-in
	For          string           `json:"for"` // the server's URL: the token is sent to no other server
	Issuer       string           `json:"issuer"`
	Resource     string           `json:"resource"`
	TokenURL     string           `json:"token_url"`
	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"`
	Style        oauth2.AuthStyle `json:"style,omitempty"`
	Scopes       []string         `json:"scopes,omitempty"`
	Access       string           `json:"access,omitempty"`
	Refresh      string           `json:"refresh,omitempty"`
	Given        time.Time        `json:"given,omitzero"`
	Expiry       time.Time        `json:"expiry,omitzero"`
}

func (l login) config() *oauth2.Config {
	return &oauth2.Config{
		ClientID: l.ClientID, ClientSecret: l.ClientSecret, Scopes: l.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: l.TokenURL, AuthStyle: l.Style},
	}
}

// withToken returns the login with new tokens.
func (l login) withToken(t *oauth2.Token) login {
	l.Access, l.Given, l.Expiry = t.AccessToken, time.Now(), t.Expiry
	if t.RefreshToken != "" {
		l.Refresh = t.RefreshToken
	}
	if granted, ok := t.Extra("scope").(string); ok && granted != "" {
		l.Scopes = strings.Fields(granted)
	}
	return l
}

// renewAhead is the longest time before its expiry that a token is renewed; a token with a short
// life is renewed in its last tenth.
const renewAhead = 30 * time.Second

// isUsable reports whether the login's token is valid and may be sent to this server.
func (l login) isUsable(s Server) bool {
	return l.For == s.URL && l.Access != "" && (l.Expiry.IsZero() || time.Until(l.Expiry) > 0)
}

// needsRenewal reports whether a new token is needed, because the login's token is too old or is
// the one that the server has refused; refused may be "".
func (l login) needsRenewal(s Server, refused string) bool {
	ends := !l.Expiry.IsZero() && time.Until(l.Expiry) < min(renewAhead, l.Expiry.Sub(l.Given)/10)
	return !l.isUsable(s) || l.Access == refused || ends && l.Refresh != ""
}

// tokenFor returns the token to send to a server; "" if the login is for another server, or has
// no valid token.
func (l login) tokenFor(s Server) string {
	if !l.isUsable(s) {
		return ""
	}
	return l.Access
}

// A knownLogin is this process's copy of a login, so that it need not read the store for each
// request.
type knownLogin struct {
	login
	readAt  time.Time // when it was read from the store
	earlier []string  // the tokens that the login had before, the newest first
}

// maxEarlier is how many earlier tokens of a login this process remembers, because a call that was
// sent with one of them may still be answered.
const maxEarlier = 16

// maxUnsignedAge is how long this process assumes that nobody has signed in to a server before it
// reads the store again.
const maxUnsignedAge = 10 * time.Second

// load reads the stored login for a server; the zero login if there is none.
func (d *Client) load(ctx context.Context, server string) (login, error) {
	all, err := d.cfg.Store.Noted(ctx, loginsSubject)
	if err != nil {
		return login{}, fmt.Errorf("read the tokens of MCP servers: %w", err)
	}
	var l login
	if raw := all[server]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			return login{}, fmt.Errorf("the stored tokens for the MCP server %s cannot be read: run parley mcp login %s", server, server)
		}
	}
	d.remember(server, l)
	return l, nil
}

// Tokens returns the tokens that this process knows for a server, the newest first: the one that is
// sent now, and those that were sent before. It makes no request.
func (d *Client) Tokens(server string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.known[server]
	if k.Access == "" {
		return slices.Clone(k.earlier)
	}
	return append([]string{k.Access}, k.earlier...)
}

// remember updates this process's copy of a server's login.
func (d *Client) remember(server string, l login) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.known[server]
	earlier := before.earlier
	if before.Access != "" && before.Access != l.Access {
		earlier = append([]string{before.Access}, earlier[:min(len(earlier), maxEarlier-1)]...)
	}
	d.known[server] = knownLogin{l, time.Now(), earlier}
}

// saveLogin stores the result of signing in to a server, or of renewing its token.
func (d *Client) saveLogin(ctx context.Context, server string, l login) error {
	if err := d.storeJSON(ctx, loginsSubject, server, l); err != nil {
		return fmt.Errorf("keep the tokens of the MCP server %s: %w", server, err)
	}
	d.remember(server, l)
	return nil
}

// Token returns the token to send to a server; "" if nobody has signed in, or if somebody has to
// sign in again.
func (d *Client) Token(ctx context.Context, s Server) (string, error) {
	d.mu.Lock()
	k, read := d.known[s.Name]
	d.mu.Unlock()
	switch {
	case read && !k.needsRenewal(s, ""):
		return k.Access, nil
	case read && k.Access == "" && time.Since(k.readAt) < maxUnsignedAge:
		return "", nil
	}
	token, err := d.Renew(ctx, s, "")
	if err != nil && read && k.isUsable(s) {
		return k.Access, nil // the token was to be renewed before it expires, and there is still time
	}
	return token, err
}

// Renew returns another token than the one that a server has refused: one that another process has obtained in the
// meantime, or a new one. If refused is "", it is any valid token. Renew returns "" if somebody has to sign in. Only
// one process at a time asks for a new token, because most authorization servers accept a refresh token only once.
func (d *Client) Renew(ctx context.Context, s Server, refused string) (string, error) {
	l, err := d.load(ctx, s.Name)
	switch {
	case err != nil:
		return "", err
	case !l.needsRenewal(s, refused):
		return l.Access, nil
	case l.For != s.URL || l.Refresh == "":
		return "", nil
	}
	err = d.cfg.RunAlone(ctx, "mcp/"+s.Name, func(ctx context.Context) error {
		if l, err = d.load(ctx, s.Name); err != nil || !l.needsRenewal(s, refused) || l.Refresh == "" {
			return err
		}
		l, err = d.refresh(ctx, s, l)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("renew the token of the MCP server %s: %w", s.Name, err)
	}
	if l.Access == refused {
		return "", nil
	}
	return l.tokenFor(s), nil
}

// refresh asks the authorization server for a new token and stores it. If the process dies in
// between, the new token is lost and the old one no longer valid, so somebody has to sign in again.
// If the authorization server says that the login is no longer valid, refresh removes its tokens.
func (d *Client) refresh(ctx context.Context, s Server, l login) (login, error) {
	old := &oauth2.Token{RefreshToken: l.Refresh, Expiry: time.Now().Add(-time.Hour)}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, d.guardedClient(s.URL))
	token, err := l.config().TokenSource(ctx, old).Token()
	if err == nil {
		l = l.withToken(token)
		return l, d.saveLogin(context.WithoutCancel(ctx), s.Name, l)
	}
	if !isLoginExpired(err) {
		return l, withoutSecrets(err)
	}
	l.Access, l.Refresh, l.Expiry = "", "", time.Time{}
	if err := d.storeJSON(ctx, loginsSubject, s.Name, l); err != nil {
		return l, err
	}
	d.remember(s.Name, l)
	return l, nil
}
