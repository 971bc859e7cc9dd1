package discordtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// answerTime is how long Discord accepts the first answer to an interaction.
const answerTime = 3 * time.Second

// A Button is one button below a message.
type Button struct{ Label, ID string }

// A row is a row of buttons in the JSON of a message.
type row struct {
	Type    int `json:"type"`
	Buttons []struct {
		Type  int    `json:"type"`
		Label string `json:"label"`
		ID    string `json:"custom_id"`
	} `json:"components"`
}

// buttons returns the buttons of the given rows; false if Discord refuses them.
func buttons(rows []row) (all []Button, ok bool) {
	ids := map[string]bool{}
	for _, r := range rows {
		if r.Type != 1 || len(r.Buttons) == 0 || len(r.Buttons) > 5 {
			return nil, false
		}
		for _, b := range r.Buttons {
			if b.Type != 2 || len([]rune(b.Label)) > 80 || len(b.ID) == 0 || len(b.ID) > 100 || ids[b.ID] {
				return nil, false
			}
			ids[b.ID] = true
			all = append(all, Button{b.Label, b.ID})
		}
	}
	return all, len(rows) <= 5
}

// An Interaction records something that a person did other than writing a message, and how the bot answered.
type Interaction struct {
	ID             string
	Answered       bool
	Deferred       bool   // whether the bot has asked Discord to wait
	Text           string // the text of the bot's answer
	Hidden         bool   // whether only the person sees the answer
	NotifiesPeople bool   // whether the answer may notify the people that it names
	at             time.Time
	token          string
}

// PressButton presses the button with that label below a message, as that user, and returns the id of the
// interaction. It panics if there is no such button.
func (s *Server) PressButton(channel, user, message, label string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, message)
	if m == nil {
		panic("discordtest: there is no message " + message) // the test's mistake
	}
	i := slices.IndexFunc(m.Buttons, func(b Button) bool { return b.Label == label })
	if i < 0 {
		panic("discordtest: the message has no button " + label) // likewise
	}
	return s.announceInteraction(channel, user, map[string]any{
		"type": 3, "message": s.messageJSON(m), "data": map[string]any{"component_type": 2, "custom_id": m.Buttons[i].ID},
	})
}

// GiveCommand gives a slash command with its options as that user, and returns the id of the interaction.
func (s *Server) GiveCommand(channel, user, name string, words ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	options := []any{}
	for i, w := range words {
		options = append(options, map[string]any{"type": 3, "name": fmt.Sprint("option", i), "value": w})
	}
	return s.announceInteraction(channel, user, map[string]any{"type": 2, "data": map[string]any{"id": "77", "name": name, "type": 1, "options": options}})
}

// announceInteraction sends the bot an interaction and returns its id. The caller holds s.mu.
func (s *Server) announceInteraction(channel, user string, event map[string]any) string {
	if _, known := s.places[channel]; !known {
		s.places[channel] = Place{ID: channel, Type: DirectChat}
	}
	d := &Interaction{ID: s.newID(), at: time.Now()}
	d.token = "interaction-token-" + d.ID
	s.interactions[d.ID] = d
	p, who := s.places[channel], map[string]any{"id": user, "username": "user" + user}
	event["id"], event["token"], event["application_id"] = d.ID, d.token, Bot
	event["channel_id"], event["channel"], event["version"] = channel, p.asJSON(), 1
	if p.Type == DirectChat {
		event["user"] = who
	} else {
		event["guild_id"], event["member"] = Guild, map[string]any{"user": who, "nick": nil}
	}
	s.gateway.announce("INTERACTION_CREATE", event)
	return d.ID
}

// InteractionResult returns an interaction with the bot's answers so far. It panics if there is no such interaction.
func (s *Server) InteractionResult(id string) Interaction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.interactions[id]
}

// answerInteraction handles the bot's first answer to an interaction.
func (s *Server) answerInteraction(w http.ResponseWriter, r *http.Request, id, token string) {
	var given struct {
		Type int `json:"type"`
		Data struct {
			Content string `json:"content"`
			Flags   int    `json:"flags"`
			mentionPolicy
		} `json:"data"`
	}
	if json.NewDecoder(r.Body).Decode(&given) != nil {
		writeError(w, http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.interactions[id]
	switch {
	case d == nil || d.token != token || time.Since(d.at) > answerTime:
		writeError(w, http.StatusNotFound, 10062, "Unknown interaction")
		return
	case d.Answered || d.Deferred:
		writeError(w, http.StatusBadRequest, 40060, "Interaction has already been acknowledged.")
		return
	case given.Type == 5:
		d.Deferred = true
	case given.Type == 4 || given.Type == 6:
		d.Answered = true
	default:
		writeError(w, http.StatusBadRequest, 50035, "Invalid Form Body")
		return
	}
	d.Text, d.Hidden, d.NotifiesPeople = given.Data.Content, given.Data.Flags&64 != 0, given.Data.Content != "" && given.Data.allowsMentions()
	w.WriteHeader(http.StatusNoContent)
}

// editInteractionAnswer handles the bot's answer to an interaction for which it has asked Discord to wait.
func (s *Server) editInteractionAnswer(w http.ResponseWriter, r *http.Request, token string) {
	var given struct {
		Content string `json:"content"`
		mentionPolicy
	}
	_ = json.NewDecoder(r.Body).Decode(&given) // an empty one says nothing
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.interactions {
		if d.token == token && d.Deferred {
			d.Answered, d.Text, d.NotifiesPeople = true, given.Content, given.allowsMentions()
			writeJSON(w, http.StatusOK, map[string]any{"id": s.newID(), "content": given.Content})
			return
		}
	}
	writeError(w, http.StatusNotFound, 10015, "Unknown Webhook")
}

// commands lists the slash commands, or replaces them.
func (s *Server) commands(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPut {
		var given []map[string]any
		if json.NewDecoder(r.Body).Decode(&given) != nil {
			writeError(w, http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
			return
		}
		s.offeredCommands = given
	}
	writeJSON(w, http.StatusOK, s.offeredCommands)
}

// OfferedCommands returns the names of the slash commands that the bot has registered.
func (s *Server) OfferedCommands() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.offeredCommands {
		names = append(names, fmt.Sprint(c["name"]))
	}
	return names
}

// react adds one of the bot's reactions to a message.
func (s *Server) react(w http.ResponseWriter, channel, id, emoji string) {
	emoji, err := url.PathUnescape(emoji)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, id)
	if m == nil || err != nil {
		writeError(w, http.StatusNotFound, 10008, "Unknown Message")
		return
	}
	if !slices.Contains(m.Reactions, emoji) {
		m.Reactions = append(m.Reactions, emoji)
	}
	w.WriteHeader(http.StatusNoContent)
}

// React adds a person's reaction to a message.
func (s *Server) React(channel, user, id, emoji string) {
	s.announceReaction("MESSAGE_REACTION_ADD", channel, user, id, emoji)
}

// Unreact removes a person's reaction from a message.
func (s *Server) Unreact(channel, user, id, emoji string) {
	s.announceReaction("MESSAGE_REACTION_REMOVE", channel, user, id, emoji)
}

// announceReaction sends the bot an event about a person's reaction.
func (s *Server) announceReaction(event, channel, user, id, emoji string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := map[string]any{"user_id": user, "channel_id": channel, "message_id": id, "emoji": map[string]any{"id": nil, "name": emoji}}
	if m := s.find(channel, id); m != nil && event == "MESSAGE_REACTION_ADD" {
		told["message_author_id"] = m.Author
	}
	if p := s.places[channel]; p.ID != "" && p.Type != DirectChat {
		told["guild_id"] = Guild
	}
	s.gateway.announce(event, told)
}

// Reactions returns the bot's reactions to a message.
func (s *Server) Reactions(channel, id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.find(channel, id); m != nil {
		return slices.Clone(m.Reactions)
	}
	return nil
}
