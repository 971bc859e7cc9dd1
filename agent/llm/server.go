package llm

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// IsOwnServer reports whether the server at a base URL seems to be the operator's own, judging by its address:
// it is on this machine or in a private network, or has a name that only such networks use. No public list
// covers the windows and prices of its models.
func IsOwnServer(base string) bool {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || slices.ContainsFunc(privateEndings(), func(end string) bool { return strings.HasSuffix(host, end) })
}

// privateEndings returns the endings of names that no public server has.
func privateEndings() []string {
	return []string{".local", ".lan", ".internal", ".localhost", ".home.arpa"}
}
