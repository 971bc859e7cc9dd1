package slack

import (
	"net/http"
	"slices"
	"strings"
)

// SendScope is the scope of the bot's token that sending a text needs.
const SendScope = "chat:write"

// Scopes are those that receiving and answering need.
func Scopes() []string {
	return []string{
		"app_mentions:read", "channels:history", "channels:read", SendScope, "files:write", "groups:history", "groups:read",
		"im:history", "im:read", "im:write", "mpim:history", "mpim:read", "reactions:write", "users:read",
	}
}

// lacks are the needed scopes that Slack does not name in its answer. None are
// missing where it names none at all: somebody on the way may have dropped them.
func (c *Channel) lacks(answer http.Header) []string {
	granted := strings.FieldsFunc(answer.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	if len(granted) == 0 {
		return nil
	}
	needed := Scopes()
	if !c.app {
		needed = []string{SendScope}
	}
	return slices.DeleteFunc(needed, func(scope string) bool { return slices.Contains(granted, scope) })
}
