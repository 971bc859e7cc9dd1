package web

import (
	"net/url"

	"parley/tools"
	"parley/tools/target"
)

// parseTarget parses the URL that a model gave.
func parseTarget(raw string) (*url.URL, error) {
	u, err := target.Parse(raw)
	if err != nil {
		return nil, tools.Errorf(tools.InvalidArgs, "%s", err)
	}
	return u, nil
}

// checkTarget returns what is wrong with a redirect's URL; nil if nothing is.
func checkTarget(u *url.URL) error {
	if err := target.Check(u); err != nil {
		return tools.Errorf(tools.InvalidArgs, "%s", err)
	}
	return nil
}

// clip cuts a text to most characters.
func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
