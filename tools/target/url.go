// Package target parses the URLs that tools connect to, and decides which addresses are this
// machine's own.
//
// A URL can be written in many ways. The code that decides about a call and the code that makes the
// call both parse the URL here, so that both mean the same host.
package target

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// MaxURL limits the length of a URL, in bytes.
const MaxURL = 8192

// Parse parses and checks the URL that a model gave. The error tells the model what to write instead.
func Parse(raw string) (*url.URL, error) {
	raw = strings.Trim(raw, " ")
	if len(raw) > MaxURL {
		return nil, fmt.Errorf("the URL is %d bytes long; at most %d are allowed", len(raw), MaxURL)
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return nil, errors.New("the URL contains a space or a control character: percent-encode it")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("this is not a URL: give one like https://example.com/page")
	}
	return u, Check(u)
}

// Check returns what is wrong with a URL from a model or a redirect; nil if nothing is. It also rewrites the URL's
// host in the form in which it is looked up: in ASCII and lower case.
func Check(u *url.URL) error {
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("the scheme %q cannot be fetched: give a URL that begins with https:// or http://", clip(u.Scheme, 32))
	}
	if u.User != nil {
		return errors.New("the URL contains a user or a password: leave them out, and send what the server wants in headers")
	}
	if u.Opaque != "" || u.Host == "" {
		return errors.New("the URL names no host: give one like https://example.com/page")
	}
	host, err := Host(u.Hostname())
	if err != nil {
		return err
	}
	port := u.Port()
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return errors.New("the URL has no valid port: ports are 1 to 65535")
		}
		port = strconv.FormatUint(n, 10)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Host = host; port != "" {
		u.Host += ":" + port
	}
	u.RawQuery = strings.ReplaceAll(u.RawQuery, " ", "%20") // a redirect's query may contain one
	return nil
}

// Host returns a host in the form in which names are looked up: in ASCII and lower case, without a
// trailing dot. It refuses what only some programs read as an IP address (2130706433, 0x7f.1),
// because nobody who means a public host writes it that way.
func Host(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", errors.New("the URL's address has a zone, so it belongs to this machine's own network")
		}
		return addr.String(), nil
	}
	plain, err := idna.Lookup.ToASCII(host)
	if err != nil {
		// Real host names contain underscores and leading hyphens, which idna refuses.
		plain = strings.ToLower(host)
	}
	plain = strings.TrimSuffix(plain, ".")
	if strings.Contains("."+plain+".", "..") || len(plain) > 253 || strings.ContainsFunc(plain, func(r rune) bool { return !isHostChar(r) }) {
		return "", fmt.Errorf("the URL's host %q is not a name: give one like example.com", clip(host, 64))
	}
	if addr, err := netip.ParseAddr(plain); err == nil {
		return addr.String(), nil
	}
	if last := plain[strings.LastIndexByte(plain, '.')+1:]; isNumber(last) {
		return "", fmt.Errorf("the URL's host %q is a number: write an address as four decimal numbers, or give a name", clip(host, 64))
	}
	return plain, nil
}

func isHostChar(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '.'
}

// isNumber reports whether the last part of a host makes browsers and C libraries treat the host as
// an address: digits, or hexadecimal digits after 0x.
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

// clip cuts a text for an error to most characters.
func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
