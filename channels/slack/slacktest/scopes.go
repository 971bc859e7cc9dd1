package slacktest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Grant gives the bot's token these scopes and no others. Until then it has all,
// and nothing is said of them.
func (s *Server) Grant(scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes = append([]string{}, scopes...)
}

// lacking names the token's scopes in the answer, and refuses a call for which
// one is missing.
func (s *Server) lacking(w http.ResponseWriter, method, channel string) bool {
	s.mu.Lock()
	granted := s.scopes
	s.mu.Unlock()
	if granted == nil || method == "apps.connections.open" {
		return false
	}
	w.Header().Set("X-OAuth-Scopes", strings.Join(granted, ","))
	for _, scope := range needed(method, channel) {
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

// needed is what a method asks of the bot's token.
func needed(method, channel string) []string {
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
