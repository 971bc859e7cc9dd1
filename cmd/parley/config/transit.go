package config

import (
	"net/netip"
	"net/url"
	"strings"
)

// inTheClear reports whether others could read what is sent to an address: its URL has no TLS, and its host isn't
// this machine. It returns false for a text that isn't a URL.
func inTheClear(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && !isLoopback(u.Hostname())
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback()
	}
	return strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
