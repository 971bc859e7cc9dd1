package server

import (
	"strings"

	"parley/channels/console"
	"parley/sessions"
)

// channelOf returns the channel in a person's id.
func channelOf(person string) string {
	name, _, _ := strings.Cut(person, ":")
	return name
}

// isOwnerTerminal reports whether a session is in the owner's terminal.
func isOwnerTerminal(session string) bool {
	key, err := sessions.ParseKey(session)
	return err == nil && key.Channel == console.Name
}
