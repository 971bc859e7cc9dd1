package web

import (
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/target"
)

// Settings holds the operator's settings.
type Settings struct {
	// Allow, if it is not empty, lists the hosts that pages may be fetched from, and Deny those
	// that they may not be fetched from; Deny wins. For the format of an entry see matches.
	Allow, Deny []string
	Search      Search
}

// Search holds the settings of the search service.
type Search struct {
	Service string // "brave", "tavily" or "searxng"; "" means none
	APIKey  string
	BaseURL string // "" means the service's own; SearXNG has none
}

// checkPermitted returns an error if the operator's lists of allowed and denied hosts do not permit
// a host.
func (s Settings) checkPermitted(host string) error {
	switch {
	case slices.ContainsFunc(s.Deny, func(entry string) bool { return matches(entry, host) }):
		return tools.Errorf(tools.PermissionDenied, "the operator has denied %s in [web] deny", host)
	case len(s.Allow) > 0 && !slices.ContainsFunc(s.Allow, func(entry string) bool { return matches(entry, host) }):
		return tools.Errorf(tools.PermissionDenied, "%s is not among the hosts that the operator allows in [web] allow: %s",
			host, clip(strings.Join(s.Allow, ", "), 300))
	}
	return nil
}

// matches reports whether an entry in a list matches a host: the host itself or, as "*.NAME", every host below NAME.
// A host that is an address is not below any name. An entry that is no host matches nothing.
func matches(entry, host string) bool {
	parent, below := strings.CutPrefix(entry, "*.")
	if !below {
		parent = entry
	}
	plain, err := target.Host(parent)
	if err != nil {
		return false
	}
	if !below {
		return plain == host
	}
	return strings.HasSuffix(host, "."+plain)
}
