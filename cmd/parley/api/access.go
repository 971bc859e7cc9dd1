package api

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// OwnerName is what the owner is called where tokens have their names.
const OwnerName = "owner"

// The scopes of tokens.
const (
	scopeSend    = "send"  // any target or address; scopeSendTo before a target is that target alone
	scopeSendTo  = "send:" // and a target
	scopeAgent   = "agent"
	scopeRead    = "read"
	scopeMetrics = "metrics"
	scopeApprove = "approve"
	scopeAdmin   = "admin"
)

// A Token is a name with a secret, and what it may do.
type Token struct {
	Name   string
	Secret string
	May    []string
}

// Access is who may ask. Its functions are asked each time.
type Access struct {
	// Local says that whoever can connect is the owner: the home's socket. No
	// token is asked for, and no Host or Origin looked at.
	Local  bool
	Owner  string // the owner's own secret; "" admits nobody
	Tokens func() []Token
	Hosts  func() []string // names that this server goes by, beside loopback and addresses
	// Public is the names by which platforms and browsers reach it, for the paths of channels and
	// of MCP servers alone.
	Public func() []string
}

// A caller is who asks.
type caller struct {
	name  string
	owner bool
	local bool
	may   []string
}

func (c caller) can(scopes ...string) bool {
	return c.owner || slices.ContainsFunc(c.may, func(s string) bool { return s == scopeAdmin || slices.Contains(scopes, s) })
}

func (c caller) admin() bool    { return c.can() }
func (c caller) reads() bool    { return c.can(scopeRead) }
func (c caller) approves() bool { return c.can(scopeApprove) }
func (c caller) measures() bool { return c.can(scopeMetrics) }
func (c caller) talks() bool    { return c.can(scopeAgent) }
func (c caller) listens() bool  { return c.reads() || c.talks() }

// speaks tells whether the caller may send to anybody at all.
func (c caller) speaks() bool {
	return c.can(scopeSend, scopeAgent) || slices.ContainsFunc(c.may, func(s string) bool { return strings.HasPrefix(s, scopeSendTo) })
}

// sends tells whether the caller may send to a target or address, written so.
func (c caller) sends(to string) bool { return c.can(scopeSend, scopeSendTo+to) }

// identify finds the caller by the token. All tokens are compared, each in the
// same time, so that how long it takes tells nothing.
func (a *API) identify(r *http.Request) (caller, error) {
	access := a.cfg.Access
	if access.Local {
		return caller{name: OwnerName, owner: true, local: true}, nil
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given = strings.TrimSpace(given)
	if !strings.EqualFold(scheme, "Bearer") || given == "" {
		return caller{}, unauthorized("give a token: Authorization: Bearer TOKEN")
	}
	var found caller
	known := false
	sum := sha256.Sum256([]byte(given))
	compare := func(secret string, c caller) {
		other := sha256.Sum256([]byte(secret))
		if subtle.ConstantTimeCompare(sum[:], other[:]) == 1 && secret != "" {
			found, known = c, true
		}
	}
	if access.Tokens != nil {
		for _, t := range access.Tokens() {
			compare(t.Secret, caller{name: t.Name, may: t.May})
		}
	}
	compare(access.Owner, caller{name: OwnerName, owner: true})
	if !known {
		return caller{}, unauthorized("this token is not known")
	}
	return found, nil
}

// checkPlace refuses requests that a foreign web page may have made: those to a
// name that is not ours, and those from another origin. Health is exempt.
func (a *API) checkPlace(r *http.Request) error {
	if a.cfg.Access.Local || r.URL.Path == healthPath || r.URL.Path == readyPath {
		return nil
	}
	var names []string
	if a.cfg.Access.Hosts != nil {
		names = a.cfg.Access.Hosts()
	}
	if a.cfg.Access.Public != nil && (strings.HasPrefix(r.URL.Path, channelsPath) || strings.HasPrefix(r.URL.Path, mcpPath)) {
		names = append(slices.Clone(names), a.cfg.Access.Public()...)
	}
	if !isOurs(r.Host, names) {
		return &refusal{status: http.StatusForbidden, code: "unknown_host", message: "this server does not go by the name in the Host header: add it to [http] hosts"}
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	from, err := url.Parse(origin)
	if err != nil || !isHome(from, r.Host, names) {
		return &refusal{status: http.StatusForbidden, code: "foreign_origin", message: "this request comes from a web page of another origin"}
	}
	return nil
}

// isHome tells whether a web page's origin is this server. Behind a proxy that
// writes a Host of its own, that is a configured name at its scheme's port; else
// another port is another server.
func isHome(from *url.URL, host string, names []string) bool {
	usual := map[string]string{"http": "80", "https": "443"}[from.Scheme]
	port := cmp.Or(from.Port(), usual)
	switch {
	case from.Host == "":
		return false
	case hostName(from.Host) != hostName(host):
		return named(from.Host, names) && port == usual
	}
	_, own, err := net.SplitHostPort(host)
	return err == nil && own == port || err != nil && port == usual
}

// isOurs tells whether a Host header may name this server: a loopback name, any
// IP address, which no DNS record can turn against us, or a configured name.
func isOurs(host string, names []string) bool {
	name := hostName(host)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	return named(host, names)
}

func named(host string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n != "" && hostName(n) == hostName(host) })
}

// hostName is the name in a Host header, without port, brackets and final dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
