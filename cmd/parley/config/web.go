package config

import (
	"fmt"
	"net/netip"
	"strings"

	"parley/cmd/parley/config/schema"
)

// Web says which web pages agents with the capability "network" may read, and which service they
// search with.
type Web struct {
	Search  string // "brave", "tavily" or "searxng"; "" means none
	APIKey  Secret
	BaseURL string // "" means the service's own URL; no trailing slash
	// Allow, if it isn't empty, lists the only hosts whose pages may be read, and Deny those whose pages may not; each
	// is a name, "*.NAME" or an address.
	Allow, Deny []string
}

// webSection declares the settings of the web tools.
func webSection() section {
	return section{
		Section: schema.Section{Name: "web", Settings: []schema.Setting{
			{Key: "search", Kind: schema.Text, OneOf: []string{"brave", "tavily", "searxng"}, Example: `"brave"`,
				Reload: schema.AtOnce, Fill: schema.Into(func(w *Web) any { return &w.Search })},
			{Key: "api_key", Kind: schema.Text, Secret: true, Example: `"${BRAVE_API_KEY}"`,
				Reload: schema.AtOnce, Fill: schema.Into(func(w *Web) any { return &w.APIKey })},
			{Key: "base_url", Kind: schema.URL, Schemes: []string{"http", "https"}, Example: `"http://127.0.0.1:8888"`,
				Reload: schema.AtOnce, Fill: schema.Into(func(w *Web) any { return &w.BaseURL })},
			{Key: "allow", Kind: schema.Texts, Default: []string{}, Example: `["example.com", "*.example.com"]`,
				Reload: schema.AtOnce, Fill: schema.Into(func(w *Web) any { return &w.Allow })},
			{Key: "deny", Kind: schema.Texts, Default: []string{}, Example: `["*.internal.example"]`,
				Reload: schema.AtOnce, Fill: schema.Into(func(w *Web) any { return &w.Deny })},
		}},
		check: checkWeb,
	}
}

// checkWeb reports what a search service lacks, such as its key, and entries in the lists that are
// not hosts: such an entry would allow or deny nothing, unnoticed.
func checkWeb(l *loader) {
	search := l.Text("web.search")
	switch {
	case search == "searxng" && l.Text("web.base_url") == "":
		l.Report(l.At("web.search"), "web.search", "SearXNG has no default server",
			`write base_url = "http://127.0.0.1:8888", or your server's address`)
	case (search == "brave" || search == "tavily") && !l.Mentioned("web.api_key"):
		l.Report(l.At("web.search"), "web.search", search+" needs a key", `write api_key = "${`+strings.ToUpper(search)+`_API_KEY}"`)
	case search == "" && l.Mentioned("web.api_key"):
		l.Report(l.At("web.api_key"), "web.api_key", "there's a key, but no search service", "write search = \"brave\" or whichever service the key is for")
	case search == "" && l.Mentioned("web.base_url"):
		l.Report(l.At("web.base_url"), "web.base_url", "there's a URL, but no search service", "write search = \"searxng\" or whichever service is at that URL")
	}
	for _, path := range []string{"web.allow", "web.deny"} {
		for i, host := range l.Texts(path) {
			if !isHost(strings.TrimPrefix(host, "*.")) {
				l.Report(l.ElementAt(path, i), path, fmt.Sprintf("%q isn't a host", host),
					`write a name, "*.NAME" for every name below it, or an address, without a scheme, port or path`)
			}
		}
	}
}

func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return strings.Trim(host, ".") != "" && !strings.ContainsAny(host, "/:@*[]%?# \t\n")
}
