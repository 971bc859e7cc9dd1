package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// Web is what agents with the capability "network" reach of the web.
type Web struct {
	Search  string // "brave", "tavily" or "searxng"; "" is none
	APIKey  Secret
	BaseURL string // "" is the service's own; no trailing slash
	// Allow and Deny are hosts, each a name, "*.NAME" or an address.
	Allow, Deny []string
}

// webSections are the settings of the web tools.
func webSections() []section {
	return []section{
		{name: "web", settings: []setting{
			{key: "search", kind: asText, oneOf: built("brave", "tavily", "searxng"), example: `"brave"`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.Search })},
			{key: "api_key", kind: asText, secret: true, example: `"${BRAVE_API_KEY}"`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.APIKey })},
			{key: "base_url", kind: asURL, schemes: []string{"http", "https"}, example: `"http://127.0.0.1:8888"`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.BaseURL })},
			{key: "allow", kind: asTexts, def: []string{}, example: `["example.com", "*.example.com"]`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.Allow })},
			{key: "deny", kind: asTexts, def: []string{}, example: `["*.internal.example"]`,
				since: first, reload: atOnce, fills: into(func(c *Config) any { return &c.Web.Deny })},
		}},
	}
}

// checkWeb looks whether a search service has what it needs, and whether the lists
// hold hosts: an entry that can mean none would allow or deny nothing unnoticed.
func (l *loader) checkWeb() {
	search := l.str("web.search")
	switch {
	case search == "searxng" && l.str("web.base_url") == "":
		l.report(l.places["web.search"], "web.search", "SearXNG has no server of its own",
			`write base_url = "http://127.0.0.1:8888", or where yours is`)
	case (search == "brave" || search == "tavily") && !l.mentioned("web.api_key"):
		l.report(l.places["web.search"], "web.search", search+" wants a key", `write api_key = "${`+strings.ToUpper(search)+`_API_KEY}"`)
	case search == "" && l.mentioned("web.api_key"):
		l.report(l.places["web.api_key"], "web.api_key", "a key of no service", "write search = \"brave\" or the service that it is of")
	case search == "" && l.mentioned("web.base_url"):
		l.report(l.places["web.base_url"], "web.base_url", "the URL of no service", "write search = \"searxng\" or the service that is there")
	}
	for _, path := range []string{"web.allow", "web.deny"} {
		for i, host := range l.list(path) {
			if !isHost(strings.TrimPrefix(host, "*.")) {
				l.report(l.element(path, i), path, fmt.Sprintf("%q is not a host", host),
					`write a name, "*." and a name for all below it, or an address; without scheme, port and path`)
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
