package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// SetScopes gives the bot's token exactly these scopes. Before the first call it has all scopes, and answers do not
// name them.
func (s *Server) SetScopes(scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes = append([]string{}, scopes...)
}

// refuseMissingScope names the token's scopes in the answer's header. It returns true if it has refused the call
// because a scope is missing.
func (s *Server) refuseMissingScope(w http.ResponseWriter, method, channel string) bool {
	s.mu.Lock()
	granted := s.scopes
	s.mu.Unlock()
	if granted == nil || method == "apps.connections.open" {
		return false
	}
	w.Header().Set("X-OAuth-Scopes", strings.Join(granted, ","))
	for _, scope := range neededScopes(method, channel) {
		if slices.Contains(granted, scope) {
			continue
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // the caller may be gone
			"ok": false, "error": "missing_scope", "needed": scope, "provided": strings.Join(granted, ","),
		})
		return true
	}
	return false
}

// neededScopes returns the scopes of the bot's token that a method needs.
func neededScopes(method, channel string) []string {
	switch method {
	case "assistant.threads.setTitle", "assistant.threads.setSuggestedPrompts":
		return []string{"assistant:write"}
	case "chat.postMessage", "chat.postEphemeral", "chat.update", "chat.startStream", "chat.appendStream", "chat.stopStream", "assistant.threads.setStatus":
		return []string{"chat:write"}
	case "users.info":
		return []string{"users:read"}
	case "reactions.add":
		return []string{"reactions:write"}
	case "conversations.open":
		return []string{"im:write"}
	case "files.getUploadURLExternal", "files.completeUploadExternal":
		return []string{"files:write"}
	case "conversations.info", "conversations.members":
		switch {
		case strings.HasPrefix(channel, "D"):
			return []string{"im:read"}
		case strings.HasPrefix(channel, "G"):
			return []string{"groups:read"}
		}
		return []string{"channels:read"}
	case "users.conversations":
		return []string{"channels:read", "groups:read", "mpim:read", "im:read"}
	case "conversations.history", "conversations.replies":
		switch {
		case strings.HasPrefix(channel, "D"):
			return []string{"im:history"}
		case strings.HasPrefix(channel, "G"):
			return []string{"groups:history"}
		}
		return []string{"channels:history"}
	}
	return nil
}
