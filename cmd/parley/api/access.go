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

	"parley/channels"
	"parley/cmd/parley/api/exchange"
)

// OwnerName is the owner's name in logs and in the audit, where other callers appear with the names of their
// tokens.
const OwnerName = "owner"

// A Token is a secret that a program sends with its requests, with its name and scopes.
type Token struct {
	Name   string
	Secret string
	May    []string
}

// Access says who may use the API. Its functions are called for each request, so a changed configuration takes
// effect at once.
type Access struct {
	// Local says that requests come through the home's socket: whoever can connect to it is the owner. No token is
	// needed, and Host and Origin are not checked.
	Local  bool
	Owner  string // the owner's secret; "" admits nobody
	Tokens func() []Token
	Hosts  func() []string // the names of this server, besides loopback names and IP addresses
	// Public returns the names by which platforms, browsers and nodes reach this server. They are valid only for the paths
	// of channels, MCP servers and nodes.
	Public func() []string
	// Encrypted returns the public names that browsers reach over TLS, through a proxy. They include the port if it
	// is not the usual one.
	Encrypted func() []string
	// SignIns stores the browsers in which somebody has signed in to the web page; nil if nobody can.
	SignIns channels.SignIns
	// OwnerMark is what the owner's sign-ins depend on in a fleet: they end when it changes. It is the same in all
	// processes, while each home has an owner's token of its own. If it is "", the sign-ins depend on that token.
	OwnerMark string
}

// identify finds out who sent a request: by its token, or by the cookie of a browser that is signed in. If nobody is
// found, it returns a refusal with status 401.
func (a Access) identify(r *http.Request) (exchange.Caller, error) {
	if a.Local {
		return exchange.Caller{Name: OwnerName, Owner: true, Local: true}, nil
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given = strings.TrimSpace(given)
	if strings.EqualFold(scheme, "Bearer") && given != "" {
		h, known := a.holderOf(given)
		if !known {
			return exchange.Caller{}, exchange.Unauthorized("this server doesn't know this token")
		}
		return h.Caller, nil
	}
	if cookie, err := r.Cookie(a.cookieName(r)); err == nil && a.SignIns != nil {
		return a.signedIn(r, cookie.Value)
	}
	return exchange.Caller{}, exchange.Unauthorized("send a token, as Authorization: Bearer TOKEN")
}

// A holder is a caller who has a token.
type holder struct {
	exchange.Caller
	secret string
	mark   string // what the caller's sign-ins depend on
}

// holders lists everybody whose token isn't empty, the owner last.
func (a Access) holders() []holder {
	var all []holder
	if a.Tokens != nil {
		for _, t := range a.Tokens() {
			all = append(all, holder{exchange.Caller{Name: t.Name, Scopes: t.May}, t.Secret, t.Secret})
		}
	}
	all = append(all, holder{exchange.Caller{Name: OwnerName, Owner: true}, a.Owner, cmp.Or(a.OwnerMark, a.Owner)})
	return slices.DeleteFunc(all, func(h holder) bool { return h.secret == "" })
}

// holderOf returns the holder of a token; known is false if there is none. It compares all tokens, each in the same
// time, so the time reveals nothing about them.
func (a Access) holderOf(given string) (found holder, known bool) {
	sum := sha256.Sum256([]byte(given))
	for _, h := range a.holders() {
		other := sha256.Sum256([]byte(h.secret))
		if subtle.ConstantTimeCompare(sum[:], other[:]) == 1 {
			found, known = h, true
		}
	}
	return found, known
}

// checkHostAndOrigin refuses requests that another site's page may have made in somebody's browser: those to a host
// name that is not this server's, and those from another origin. public are the path prefixes of the public routes.
// Requests about health, and those through the home's socket, are exempt.
func (a Access) checkHostAndOrigin(r *http.Request, public []string) error {
	if a.Local || r.URL.Path == healthPath || r.URL.Path == readyPath {
		return nil
	}
	var names []string
	if a.Hosts != nil {
		names = a.Hosts()
	}
	if a.Public != nil && slices.ContainsFunc(public, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) }) {
		names = append(slices.Clone(names), a.Public()...)
	}
	if !isOwnHost(r.Host, names) {
		return &exchange.Refusal{Status: http.StatusForbidden, Code: "unknown_host", Message: "this server doesn't go by the name in the Host header: add it to [http] hosts"}
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	from, err := url.Parse(origin)
	if err != nil || !isOwnOrigin(from, r.Host, names) {
		return &exchange.Refusal{Status: http.StatusForbidden, Code: "foreign_origin", Message: "this request comes from a web page on another origin, which this server doesn't allow"}
	}
	return nil
}

// isOwnOrigin reports whether a web page's origin is this server. It compares the origin with the Host header; for
// a proxy that sets its own Host, one of the configured names also counts, but only at the usual port of its
// scheme.
func isOwnOrigin(from *url.URL, host string, names []string) bool {
	usual := map[string]string{"http": "80", "https": "443"}[from.Scheme]
	port := cmp.Or(from.Port(), usual)
	switch {
	case from.Host == "":
		return false
	case hostName(from.Host) != hostName(host):
		return isListedHost(from.Host, names) && port == usual
	}
	_, own, err := net.SplitHostPort(host)
	return err == nil && own == port || err != nil && port == usual
}

// isOwnHost reports whether a Host header may name this server: a loopback name, any IP address (which no DNS
// record can turn against the server), or a configured name.
func isOwnHost(host string, names []string) bool {
	if _, err := netip.ParseAddr(hostName(host)); err == nil {
		return true
	}
	return isLoopbackHost(host) || isListedHost(host, names)
}

// isListedHost reports whether a host is one of these names.
func isListedHost(host string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return n != "" && hostName(n) == hostName(host) })
}

// hostName returns the name in a Host header, without port, brackets and trailing dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}
