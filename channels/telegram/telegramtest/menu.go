package telegramtest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Command is a command in the list that apps show.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// maxCommands is the maximum number of commands in a list.
const maxCommands = 100

var commandPattern = regexp.MustCompile("^[a-z0-9_]{1,32}$")

// Menu returns the list of commands for a scope, such as "default".
func (s *Server) Menu(scope string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.menus[scope])
}

// SetMenu sets the list of commands for a scope, as the bot's owner can.
func (s *Server) SetMenu(scope string, commands ...Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.menus[scope] = commands
}

// scopeType returns the type of the scope that a call names; "default" if it names none.
func scopeType(p params) string {
	var scope struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(p["scope"]), &scope) != nil || scope.Type == "" {
		return "default"
	}
	return scope.Type
}

// setMyCommands answers the method with that name.
func (s *Server) setMyCommands(p params) ([]byte, error) {
	var commands []Command
	if err := json.Unmarshal([]byte(p["commands"]), &commands); err != nil || len(commands) > maxCommands {
		return nil, badRequest("can't parse commands JSON object")
	}
	for _, c := range commands {
		if !commandPattern.MatchString(c.Command) || c.Description == "" || len(c.Description) > 256 {
			return nil, badRequest("BOT_COMMAND_INVALID")
		}
	}
	s.SetMenu(scopeType(p), commands...)
	return []byte(`{"ok":true,"result":true}`), nil
}

// getMyCommands answers the method with that name.
func (s *Server) getMyCommands(p params) ([]byte, error) {
	shown := s.Menu(scopeType(p))
	if shown == nil {
		shown = []Command{}
	}
	return json.Marshal(map[string]any{"ok": true, "result": shown})
}

// React changes a user's reactions to a message from one list of emojis to another. A bot that has not asked for
// such updates receives none.
func (s *Server) React(chat, user int64, message int, from, to []string) {
	s.mu.Lock()
	asked := strings.Contains(s.allowedUpdates, `"message_reaction"`)
	s.mu.Unlock()
	if !asked {
		return
	}
	kinds := func(emoji []string) []map[string]any {
		all := []map[string]any{}
		for _, one := range emoji {
			all = append(all, map[string]any{"type": "emoji", "emoji": one})
		}
		return all
	}
	s.QueueUpdate(map[string]any{"message_reaction": map[string]any{
		"chat": chatFields(chat), "message_id": message, "user": userFields(user), "date": time.Now().Unix(),
		"old_reaction": kinds(from), "new_reaction": kinds(to),
	}})
}
