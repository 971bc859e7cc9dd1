package interaction

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Reaction is a reaction that a person has added to a message or removed from it.
type Reaction struct {
	ID      string // the same each time Slack delivers it
	User    string
	Author  string // the user who wrote the message
	Chat    string
	Message string // the message's ts
	Name    string // the emoji's name, without its skin tone
	Removed bool
	At      time.Time
}

// ReadReaction reads an event; false if it is not about a reaction to a message, or if a required field is missing.
func ReadReaction(event json.RawMessage) (Reaction, bool, error) {
	var e struct {
		Type   string `json:"type"`
		At     string `json:"event_ts"`
		User   string `json:"user"`
		Name   string `json:"reaction"`
		Author string `json:"item_user"`
		Item   struct {
			Type    string `json:"type"`
			Channel string `json:"channel"`
			TS      string `json:"ts"`
		} `json:"item"`
	}
	if err := json.Unmarshal(event, &e); err != nil {
		return Reaction{}, false, fmt.Errorf("read a reaction: %w", err)
	}
	if e.Type != "reaction_added" && e.Type != "reaction_removed" || e.Item.Type != "message" {
		return Reaction{}, false, nil
	}
	name, _, _ := strings.Cut(e.Name, "::")
	r := Reaction{
		ID: e.Type + ":" + e.User + ":" + e.At + ":reaction", User: e.User, Author: e.Author, Chat: e.Item.Channel, Message: e.Item.TS,
		Name: name, Removed: e.Type == "reaction_removed", At: ParseTS(e.At),
	}
	return r, r.User != "" && r.Chat != "" && isTS(r.Message) && r.Name != "", nil
}
