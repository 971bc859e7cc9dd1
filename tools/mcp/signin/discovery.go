package signin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// discovery holds what is known about a server before somebody signs in to it.
type discovery struct {
	resource string   // the resource for which tokens are requested
	scopes   []string // the scopes that the server wants, if it says so
	server   *oauthex.AuthServerMeta
}

// ErrNoSignInNeeded is returned for a server that answers without a sign-in.
var ErrNoSignInNeeded = errors.New("the server answers without a sign-in, so there's nothing to do")

// discover finds out where to sign in: from what the server says (RFC 9728), and then from what its
// authorization server says (RFC 8414). Servers that say nothing are treated according to earlier
// versions of the protocol.
func (d *Client) discover(ctx context.Context, s Server) (discovery, error) {
	challenge, err := d.readChallenge(ctx, s)
	if err != nil {
		return discovery{}, err
	}
	asked, err := oauthex.ParseWWWAuthenticate(challenge)
	if err != nil {
		return discovery{}, fmt.Errorf("what the server says about how to sign in cannot be read: %w", err)
	}
	found := discovery{}
	where := ""
	for _, c := range asked {
		if where == "" {
			where = c.Params["resource_metadata"]
		}
		if c.Scheme == "bearer" && found.scopes == nil {
			found.scopes = strings.Fields(c.Params["scope"])
		}
	}
	issuer, err := d.findIssuer(ctx, s, where, &found)
	if err != nil {
		return discovery{}, err
	}
	if found.server, err = auth.GetAuthServerMetadata(ctx, issuer, d.guardedClient(s.URL)); err != nil {
		return discovery{}, fmt.Errorf("what its authorization server says cannot be used: %w", withoutSecrets(err))
	}
	if found.server == nil {
		found.server = &oauthex.AuthServerMeta{
			Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token", RegistrationEndpoint: issuer + "/register",
		}
	}
	return found, nil
}

// findIssuer returns the address of the authorization server that a server names in its
// description, which is at the address where or at a standard address. It records the rest of the
// description in found. If there is no description, the server itself counts as its authorization
// server.
func (d *Client) findIssuer(ctx context.Context, s Server, where string, found *discovery) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", err
	}
	root := &url.URL{Scheme: u.Scheme, Host: u.Host}
	places := []struct{ at, resource string }{
		{where, s.URL},
		{root.String() + "/.well-known/oauth-protected-resource/" + strings.TrimLeft(u.Path, "/"), s.URL},
		{root.String() + "/.well-known/oauth-protected-resource", root.String()},
	}
	var wrong error
	for _, p := range places {
		if p.at == "" {
			continue
		}
		said, err := oauthex.GetProtectedResourceMetadata(ctx, p.at, p.resource, d.guardedClient(s.URL))
		switch {
		case err != nil && p.at == where:
			wrong = err // the address that the server itself gives must be right
		case err != nil || said == nil:
		case len(said.AuthorizationServers) == 0:
			return "", errors.New("the server names no authorization server")
		default:
			found.resource = said.Resource
			if len(found.scopes) == 0 {
				found.scopes = said.ScopesSupported
			}
			return said.AuthorizationServers[0], nil
		}
	}
	if wrong != nil {
		return "", fmt.Errorf("what the server says about how to sign in cannot be used: %w", withoutSecrets(wrong))
	}
	found.resource = s.URL
	return root.String(), nil
}

// readChallenge returns the headers with which a server tells a client that it has to sign in:
// those stored last, or those in the answer to a request that it makes now. It returns ErrNoSignInNeeded if
// the server doesn't require that.
func (d *Client) readChallenge(ctx context.Context, s Server) ([]string, error) {
	said, err := d.cfg.Store.Noted(ctx, challengesSubject)
	if err != nil {
		return nil, fmt.Errorf("read what the server has said: %w", err)
	}
	if text := said[s.Name]; text != "" && strings.HasPrefix(text, s.URL+"\n") {
		return strings.Split(strings.TrimPrefix(text, s.URL+"\n"), "\n"), nil
	}
	const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"parley","version":"1"}}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader([]byte(greeting)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := d.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("the server cannot be reached: %w", withoutSecrets(err))
	}
	defer func() { _ = answer.Body.Close() }() // nobody reads the body
	if answer.StatusCode != http.StatusUnauthorized {
		return nil, ErrNoSignInNeeded
	}
	return answer.Header.Values("WWW-Authenticate"), nil
}

// maxChallenge is the maximum length of the headers that are stored, in bytes; longer ones are not
// stored at all.
const maxChallenge = 8 << 10

// RecordWanted records that a server wants somebody to sign in. challenge holds the headers in
// which it said so. It does nothing if there are none, or if they are longer than maxChallenge.
func (d *Client) RecordWanted(ctx context.Context, s Server, challenge []string) error {
	text := s.URL + "\n" + strings.Join(challenge, "\n")
	if len(challenge) == 0 || len(text) > maxChallenge {
		return nil // the server is asked again
	}
	return d.cfg.Store.SetNote(ctx, challengesSubject, s.Name, text)
}

// scopesToRequest returns the scopes to ask for: those that the server wants, and those that were
// granted before.
func (d *Client) scopesToRequest(ctx context.Context, s Server, found discovery) ([]string, error) {
	before, err := d.load(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	var all []string
	if before.For == s.URL && before.Issuer == found.server.Issuer {
		all = slices.Clone(before.Scopes)
	}
	wanted := slices.Clone(found.scopes)
	if slices.Contains(found.server.ScopesSupported, offlineScope) {
		wanted = append(wanted, offlineScope)
	}
	for _, scope := range wanted {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all, nil
}

// offlineScope is the scope that a client must ask for to get a refresh token, with which it later
// renews its token.
const offlineScope = "offline_access"

// A client holds the credentials that identify this program to an authorization server.
type client struct {
	id, secret string
	style      oauth2.AuthStyle
}

// clientFor returns this program's credentials for an authorization server: those that the operator
// has registered there; or else the address of the page that describes this program, if the server
// accepts that; or else those that the program gets by registering itself.
func (d *Client) clientFor(ctx context.Context, s Server, found discovery, redirect string) (client, error) {
	switch {
	case s.ClientID != "":
		return client{s.ClientID, s.ClientSecret, styleFor(found.server.TokenEndpointAuthMethodsSupported)}, nil
	case d.cfg.ClientIDURL != "" && found.server.ClientIDMetadataDocumentSupported:
		return client{id: d.cfg.ClientIDURL, style: oauth2.AuthStyleInParams}, nil
	case found.server.RegistrationEndpoint == "":
		return client{}, fmt.Errorf("its authorization server registers nobody by itself: register Parley there, with the redirect URL %s, and set client_id (and client_secret) in [mcp.%s]", redirect, s.Name)
	}
	given, err := oauthex.RegisterClient(ctx, found.server.RegistrationEndpoint, d.registration(found, redirect), d.guardedClient(s.URL))
	if err != nil {
		return client{}, fmt.Errorf("its authorization server did not register Parley: %w", withoutSecrets(err))
	}
	return client{given.ClientID, given.ClientSecret, styleOf(given.TokenEndpointAuthMethod)}, nil
}

// registration returns what this program tells an authorization server about itself when it
// registers.
func (d *Client) registration(found discovery, redirect string) *oauthex.ClientRegistrationMetadata {
	said := &oauthex.ClientRegistrationMetadata{
		ClientName: "Parley", RedirectURIs: []string{redirect}, ApplicationType: "web",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}
	if u, err := url.Parse(redirect); err == nil && isLocal(u.Hostname()) {
		said.ApplicationType = "native"
	}
	if methods := found.server.TokenEndpointAuthMethodsSupported; slices.Contains(methods, "none") && len(methods) == 1 {
		said.TokenEndpointAuthMethod = "none"
	}
	return said
}

// styleFor returns how to send the client's credentials, given the methods that an authorization server says it
// supports; AuthStyleAutoDetect if it names none that this program knows.
func styleFor(methods []string) oauth2.AuthStyle {
	for _, method := range []string{"client_secret_post", "client_secret_basic", "none"} {
		if slices.Contains(methods, method) {
			return styleOf(method)
		}
	}
	return oauth2.AuthStyleAutoDetect
}

// styleOf returns how to send the client's credentials by one method.
func styleOf(method string) oauth2.AuthStyle {
	if method == "client_secret_post" || method == "none" {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}
