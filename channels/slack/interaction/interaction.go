// Package interaction reads what people do with a Slack app other than writing messages.
//
// People press a button, give the slash command, or choose the message shortcut. Slack delivers each of these once,
// and tells the person that it failed if nobody acknowledges it within three seconds. People also open the app's
// home and its pane (opened.go), and react to messages (reaction.go): these are events, which Slack redelivers.
package interaction

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Shortcut is the callback id of the message shortcut in the app's manifest.
const Shortcut = "ask"

// A Kind is a kind of action.
type Kind string

// The kinds.
const (
	Pressed   Kind = "press"   // a button below one of the bot's messages
	Commanded Kind = "command" // the slash command
	Asked     Kind = "ask"     // the message shortcut
)

// An Action is a button press, a command or a shortcut, as Slack describes it.
type Action struct {
	Kind     Kind
	ID       string // the same each time Slack delivers it
	User     string
	Username string // the user's name; "" if Slack does not say
	Chat     string
	Thread   string    // the thread of the message that has the button, or that the question is about
	Message  string    // the ts of the message that has the button, or that the question is about
	At       time.Time // when it happened; zero if Slack does not say
	// Says is the text that the button sends, or the words after the command, with references in Slack's form.
	Says string
	// About is the message that the question is about, in Slack's JSON.
	About json.RawMessage
}

// ReadInteractive reads the payload of a button press or a shortcut; false if it is another kind of payload, or if a
// required field is missing.
func ReadInteractive(payload json.RawMessage) (Action, bool, error) {
	var p struct {
		Type     string `json:"type"`
		Callback string `json:"callback_id"`
		User     struct {
			ID   string `json:"id"`
			Name string `json:"username"`
			// Called is the shortcut's name in its payload.
			Called string `json:"name"`
		} `json:"user"`
		Channel struct {
			ID string `json:"id"`
		} `json:"channel"`
		Container struct {
			Channel string `json:"channel_id"`
			TS      string `json:"message_ts"`
		} `json:"container"`
		Message json.RawMessage `json:"message"`
		At      string          `json:"action_ts"`
		Actions []struct {
			Value string `json:"value"`
			At    string `json:"action_ts"`
		} `json:"actions"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return Action{}, false, fmt.Errorf("read an interaction: %w", err)
	}
	var shown struct {
		TS     string `json:"ts"`
		Thread string `json:"thread_ts"`
	}
	if len(p.Message) > 0 {
		if err := json.Unmarshal(p.Message, &shown); err != nil {
			return Action{}, false, fmt.Errorf("read an interaction's message: %w", err)
		}
	}
	d := Action{User: p.User.ID, Username: p.User.Name, Thread: shown.Thread}
	at := p.At
	switch {
	case p.Type == "block_actions" && len(p.Actions) > 0 && p.Actions[0].Value != "":
		d.Kind, d.Chat, d.Message, d.Says, at = Pressed, p.Container.Channel, p.Container.TS, p.Actions[0].Value, p.Actions[0].At
	case p.Type == "message_action" && p.Callback == Shortcut:
		d.Kind, d.Chat, d.Message, d.About = Asked, p.Channel.ID, shown.TS, p.Message
		if d.Username == "" {
			d.Username = p.User.Called
		}
	default:
		return Action{}, false, nil
	}
	if d.Thread == d.Message { // the message began the thread and was not written in it
		d.Thread = ""
	}
	d.ID, d.At = string(d.Kind)+":"+d.User+":"+at, ParseTS(at)
	if d.Kind == Asked {
		d.ID += ":about" // so that the id does not end like a message's
	}
	return d, d.User != "" && d.Chat != "" && isTS(d.Message), nil
}

// ReadCommand reads the payload of a slash command; false if a required field is missing.
func ReadCommand(payload json.RawMessage) (Action, bool, error) {
	var p struct {
		User     string `json:"user_id"`
		Username string `json:"user_name"`
		Chat     string `json:"channel_id"`
		Text     string `json:"text"`
		Trigger  string `json:"trigger_id"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return Action{}, false, fmt.Errorf("read a slash command: %w", err)
	}
	d := Action{Kind: Commanded, ID: string(Commanded) + ":" + p.User + ":" + p.Trigger + ":said", User: p.User, Username: p.Username, Chat: p.Chat, Says: p.Text}
	return d, p.User != "" && p.Chat != "" && p.Trigger != "", nil
}

// isTS reports whether a text has the form of a message's ts.
func isTS(id string) bool { return id != "" && strings.Trim(id, "0123456789.") == "" }

// ParseTS parses a message's ts, which is a time with six decimals; it returns the zero time for any other text.
func ParseTS(ts string) time.Time {
	whole, decimals, ok := strings.Cut(ts, ".")
	if !ok || len(decimals) != 6 || !isTS(ts) {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}
	}
	micros, err := strconv.ParseInt(decimals, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, micros*1000).UTC()
}
