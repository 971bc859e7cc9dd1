package api

import (
	"parley/bus"
	"parley/channels/console"
	"parley/channels/web"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
)

// A sessionKey holds the parts of a session's key: which agent talks where, and with whom.
type sessionKey struct {
	text  string
	agent string
	at    bus.Address
	user  string // the only person in this conversation; "" if everybody there shares it
}

// parseKey splits the key of a session, made by sessions.Key or sessions.PersonalKey, into its parts. Any other text is
// an error.
func parseKey(text string) (sessionKey, error) {
	parts, err := sessions.ParseKey(text)
	return sessionKey{text, parts.Agent, bus.Address{Channel: parts.Channel, Chat: parts.Chat, Thread: parts.Thread}, parts.User}, err
}

// belongsTo reports whether the session is the caller's own. A token owns the sessions that it
// began; the owner also owns the terminals' sessions.
func (k sessionKey) belongsTo(c exchange.Caller) bool {
	return k.at.Channel == web.Name && k.at.Chat == c.Name || k.at.Channel == console.Name && c.Owner
}
