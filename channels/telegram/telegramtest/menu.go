package telegramtest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Command is one in the list that apps show.
type Command struct {
	Command     string `json:"command"`
	Description string `json:"description"`
}

// mostCommands is how many a list may have.
const mostCommands = 100

var goodCommand = regexp.MustCompile("^[a-z0-9_]{1,32}$")

// Menu is the list of commands of a scope, such as "default".
func (s *Server) Menu(scope string) []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.menus[scope])
}

// SetMenu sets one, as the bot's owner may.
func (s *Server) SetMenu(scope string, commands ...Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.menus[scope] = commands
}

func scopeOf(p params) string {
	var scope struct {
		Type string `json:"type"`
	}
	if json.Unmarshal([]byte(p["scope"]), &scope) != nil || scope.Type == "" {
		return "default"
	}
	return scope.Type
}

func (s *Server) setMyCommands(p params) ([]byte, error) {
	var commands []Command
	if err := json.Unmarshal([]byte(p["commands"]), &commands); err != nil || len(commands) > mostCommands {
		return nil, bad("can't parse commands JSON object")
	}
	for _, c := range commands {
		if !goodCommand.MatchString(c.Command) || c.Description == "" || len(c.Description) > 256 {
			return nil, bad("BOT_COMMAND_INVALID")
		}
	}
	s.SetMenu(scopeOf(p), commands...)
	return []byte(`{"ok":true,"result":true}`), nil
}

func (s *Server) getMyCommands(p params) ([]byte, error) {
	shown := s.Menu(scopeOf(p))
	if shown == nil {
		shown = []Command{}
	}
	return json.Marshal(map[string]any{"ok": true, "result": shown})
}

// React has a user change their reactions to a message to these emoji from those. Who
// has not asked for such updates is told of none.
func (s *Server) React(chat, user int64, message int, from, to []string) {
	s.mu.Lock()
	asked := strings.Contains(s.allowed, `"message_reaction"`)
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
	s.Update(map[string]any{"message_reaction": map[string]any{
		"chat": chatFields(chat), "message_id": message, "user": userFields(user), "date": time.Now().Unix(),
		"old_reaction": kinds(from), "new_reaction": kinds(to),
	}})
}
