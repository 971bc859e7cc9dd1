package web

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"parley/tools"
)

// maxURL bounds a URL, in bytes.
const maxURL = 8192

// parseTarget reads the URL that a model gave.
func parseTarget(raw string) (*url.URL, error) {
	raw = strings.Trim(raw, " ")
	if len(raw) > maxURL {
		return nil, tools.Errorf(tools.InvalidArgs, "the URL has %d bytes, at most %d are allowed", len(raw), maxURL)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, tools.Errorf(tools.InvalidArgs, "the URL holds a space or a control character: write it percent-encoded")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, tools.Errorf(tools.InvalidArgs, "this is no URL: give one like https://example.com/page")
	}
	return u, checkTarget(u)
}

// checkTarget says what is wrong with a URL, whether a model or a redirect gave it,
// and writes its host as it is asked for: in ASCII, lower case.
func checkTarget(u *url.URL) error {
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme != "http" && u.Scheme != "https" {
		return tools.Errorf(tools.InvalidArgs, "the scheme %q cannot be fetched: give a URL that begins with https:// or http://", clip(u.Scheme, 32))
	}
	if u.User != nil {
		return tools.Errorf(tools.InvalidArgs, "the URL holds a user or a password: leave them out, and send what the server wants in headers")
	}
	if u.Opaque != "" || u.Host == "" {
		return tools.Errorf(tools.InvalidArgs, "the URL names no host: give one like https://example.com/page")
	}
	host, err := plainHost(u.Hostname())
	if err != nil {
		return err
	}
	port := u.Port()
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return tools.Errorf(tools.InvalidArgs, "the URL has no valid port: ports are 1 to 65535")
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Host = host; port != "" {
		u.Host += ":" + port
	}
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20") // a redirect's may have one
	return nil
}

// plainHost is a host as names are looked up: in ASCII and lower case, without a
// dot at its end. What only some programs take for an address (2130706433, 0x7f.1)
// is refused: nobody who means a public host writes it so.
func plainHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", tools.Errorf(tools.InvalidArgs, "the URL's address has a zone: it is of this machine's own network")
		}
		return addr.String(), nil
	}
	plain, err := idna.Lookup.ToASCII(host)
	if err != nil {
		// Real hosts have underscores and leading hyphens; what idna maps is kept.
		plain = strings.ToLower(host)
	}
	plain = strings.TrimSuffix(plain, ".")
	if strings.Contains("."+plain+".", "..") || len(plain) > 253 || strings.ContainsFunc(plain, func(r rune) bool { return !inHost(r) }) {
		return "", tools.Errorf(tools.InvalidArgs, "the URL's host %q is not a name: give one like example.com", clip(host, 64))
	}
	if addr, err := netip.ParseAddr(plain); err == nil {
		return addr.String(), nil
	}
	if last := plain[strings.LastIndexByte(plain, '.')+1:]; isNumber(last) {
		return "", tools.Errorf(tools.InvalidArgs, "the URL's host %q is a number: write an address as four decimal numbers, or give a name", clip(host, 64))
	}
	return plain, nil
}

func inHost(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
}

// isNumber tells whether the last part of a host makes it an address, as browsers
// and C libraries have it: digits, or hexadecimal digits after 0x.
func isNumber(part string) bool {
	digits := "0123456789"
	if hex, is := strings.CutPrefix(part, "0x"); is {
		part, digits = hex, digits+"abcdef"
		if part == "" {
			return true
		}
	}
	return part != "" && strings.Trim(part, digits) == ""
}

// permit says what the operator's lists say of a host.
func (s Settings) permit(host string) error {
	switch {
	case slices.ContainsFunc(s.Deny, func(entry string) bool { return matches(entry, host) }):
		return tools.Errorf(tools.PermissionDenied, "the operator has denied %s in [web] deny", host)
	case len(s.Allow) > 0 && !slices.ContainsFunc(s.Allow, func(entry string) bool { return matches(entry, host) }):
		return tools.Errorf(tools.PermissionDenied, "%s is not among the hosts that the operator allows in [web] allow: %s",
			host, clip(strings.Join(s.Allow, ", "), 300))
	}
	return nil
}

// matches tells whether an entry of a list means a host: itself, or as "*.NAME" all
// that are below NAME. A host that is an address is no name below another.
func matches(entry, host string) bool {
	parent, below := strings.CutPrefix(entry, "*.")
	if !below {
		parent = entry
	}
	plain, err := plainHost(parent)
	if err != nil {
		return false
	}
	if !below {
		return plain == host
	}
	return strings.HasSuffix(host, "."+plain)
}

// clip is the beginning of a text that goes into an error.
func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
