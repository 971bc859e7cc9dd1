package web

import (
	"net/url"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/target"
)

// parseTarget reads the URL that a model gave.
func parseTarget(raw string) (*url.URL, error) {
	u, err := target.Parse(raw)
	if err != nil {
		return nil, tools.Errorf(tools.InvalidArgs, "%s", err)
	}
	return u, nil
}

// checkTarget returns what is wrong with a URL to which a redirect leads; nil if nothing is.
func checkTarget(u *url.URL) error {
	if err := target.Check(u); err != nil {
		return tools.Errorf(tools.InvalidArgs, "%s", err)
	}
	return nil
}

// checkPermitted returns an error if the operator's lists of allowed and denied hosts do not
// permit a host.
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

// matches reports whether an entry of a list means a host: itself, or as "*.NAME" every host
// below NAME. A host that is an address is not below any name.
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

// clip returns the beginning of a text that goes into an error.
func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
