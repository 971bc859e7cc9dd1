package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"html"
	"strings"
	"unicode"

	slackgo "github.com/slack-go/slack"

	"parley/bus"
)

// maxNames bounds how many of those whom a text names are looked up.
const maxNames = 10

// slackbot is a user who is in every workspace and is no person.
const slackbot = "USLACKBOT"

// A message is what we read of one, as an event or in history.
type message struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	User        string          `json:"user"`
	BotID       string          `json:"bot_id"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	ThreadTS    string          `json:"thread_ts"`
	Hidden      bool            `json:"hidden"`
	Edited      json.RawMessage `json:"edited"`
	Files       []file          `json:"files"`
	Attachments []attachment    `json:"attachments"`
}

// A file is one that was shared.
type file struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// past makes a message of one from history.
func past(chat string, m slackgo.Message) message {
	made := message{
		Type: "message", Subtype: m.SubType, Channel: chat, User: m.User, BotID: m.BotID,
		Text: m.Text, TS: m.Timestamp, ThreadTS: m.ThreadTimestamp, Hidden: m.Hidden,
	}
	for _, f := range m.Files {
		made.Files = append(made.Files, file{Name: f.Name, Title: f.Title})
	}
	for _, a := range m.Attachments {
		made.Attachments = append(made.Attachments, sharedIn(a))
	}
	return made
}

// isSpeech tells whether a person says something in it: no joins and topics, no
// edits, nothing of the bot's own or of another's.
func (m *message) isSpeech(me Account) bool {
	switch m.Type {
	case "message":
	case "app_mention":
		if len(m.Edited) > 0 && string(m.Edited) != "null" {
			return false // the mention was added later
		}
	default:
		return false
	}
	switch m.Subtype {
	case "", "file_share", "thread_broadcast", "me_message":
	default:
		return false
	}
	return !m.Hidden && m.BotID == "" && m.User != "" && m.User != me.User && m.User != slackbot && m.TS != "" && m.Channel != ""
}

// isGroup tells whether others read along.
func (m *message) isGroup() bool {
	return m.ChannelType != "im" && !strings.HasPrefix(m.Channel, "D")
}

// isReply tells whether a message was said in a thread. History calls what began
// a thread a part of it too; whoever said that was not in one.
func (m *message) isReply() bool { return m.ThreadTS != "" && m.ThreadTS != m.TS }

// mentions tells whether the text names a user.
func (m *message) mentions(user string) bool {
	return strings.Contains(m.Text, "<@"+user+">") || strings.Contains(m.Text, "<@"+user+"|")
}

// mayConcern tells whether a message can be meant for the bot, as far as that
// can be said without asking anybody.
func (m *message) mayConcern(me Account) bool {
	return m.isSpeech(me) && (!m.isGroup() || m.isReply() || m.mentions(me.User))
}

// at is where the answer goes: in a channel into the message's thread, which it
// begins where there is none.
func (c *Channel) at(m *message) bus.Address {
	at := bus.Address{Channel: c.name, Chat: m.Channel}
	switch {
	case m.isReply():
		at.Thread = m.ThreadTS
	case m.isGroup():
		at.Thread = m.TS
	}
	return at
}

// id is the message's for good: its events have others, one for each telling.
func (c *Channel) id(m *message, me Account) string {
	return c.name + ":" + me.Team + ":" + m.Channel + ":" + m.TS
}

// inbound is what a message says to the agent; false if it is not meant for it.
// Its error means that this cannot be told now.
func (c *Channel) inbound(ctx context.Context, m *message, me Account) (bus.Inbound, bool, error) {
	in := bus.Inbound{
		ID: c.id(m, me), Kind: bus.Said, At: c.at(m), Group: m.isGroup(), ReplyTo: m.TS, SentAt: moment(m.TS),
		From: bus.Person{ID: c.name + ":" + m.User},
	}
	called := m.mentions(me.User)
	in.Mentioned = called || !in.Group
	if !in.Mentioned {
		since, joined, err := c.joins.Joined(ctx, in.At)
		// What history tells of the time before was said among people.
		if err != nil || !joined || in.SentAt.Before(since) {
			return bus.Inbound{}, false, err
		}
		in.Mentioned = true
	}
	in.From.Name = cmp.Or(c.people.name(ctx, m.User), m.User) // in a thread the model must tell them apart
	in.Text = c.words(ctx, m, me, called)
	in.Quotes = c.quotes(ctx, m, me)
	return in, true, nil
}

// words is a message's text as it would be typed.
func (c *Channel) words(ctx context.Context, m *message, me Account, called bool) string {
	text := uncalled(m.Text, me.User)
	text = strings.TrimSpace(c.plain(ctx, text, me))
	text = command(text, called)
	if text == "" && len(m.Files) == 0 && !m.shares() {
		text = "@" + me.Username
	}
	return strings.TrimSpace(named(m.Files) + " " + text)
}

// named are files by their names.
func named(files []file) string {
	var all []string
	for _, f := range files {
		name := cmp.Or(oneLine(f.Name, 200), oneLine(f.Title, 200))
		if name == "" {
			all = append(all, "[file]")
			continue
		}
		all = append(all, "[file: "+name+"]")
	}
	return strings.Join(all, " ")
}

// uncalled takes the bot's name off where a text begins with it.
func uncalled(text, me string) string {
	rest := strings.TrimLeftFunc(text, unicode.IsSpace)
	after, ok := strings.CutPrefix(rest, "<@"+me)
	if !ok {
		return text
	}
	end := strings.IndexByte(after, '>')
	if end != 0 && !strings.HasPrefix(after, "|") {
		return text
	}
	return strings.TrimLeft(after[end+1:], ",:; \t\n")
}

// CommandPrefix is what a command begins with here.
func (*Channel) CommandPrefix() string { return commandPrefix }

const commandPrefix = "!"

// command turns what Slack lets people type into what the Gateway reads: Slack
// keeps what begins with a slash to itself. A command is "!stop", or "stop" and
// nothing else behind the bot's name.
func command(text string, called bool) string {
	word, rest := text, ""
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		word, rest = text[:i], text[i:]
	}
	marked := strings.HasPrefix(word, commandPrefix)
	word = strings.ToLower(strings.TrimPrefix(word, commandPrefix))
	if !marked && (!called || rest != "") {
		return text
	}
	switch word {
	case "stop", "status", "new", "help":
		return "/" + word + rest
	case "start": // what an owner's code is said with
		if marked {
			return "/" + word + rest
		}
	}
	return text
}

// plain reads Slack's way of writing text.
func (c *Channel) plain(ctx context.Context, text string, me Account) string {
	var b strings.Builder
	for names := 0; ; {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			break
		}
		end := strings.IndexByte(text[i:], '>')
		if end < 0 {
			break
		}
		b.WriteString(html.UnescapeString(text[:i]))
		ref := text[i+1 : i+end]
		if strings.HasPrefix(ref, "@") && !strings.Contains(ref, "|") {
			if names++; names > maxNames {
				ref += "|" + ref[1:] // called by its id
			}
		}
		b.WriteString(c.reference(ctx, ref, me))
		text = text[i+end+1:]
	}
	b.WriteString(html.UnescapeString(text))
	return b.String()
}

// reference is what stands between < and >, as people read it.
func (c *Channel) reference(ctx context.Context, ref string, me Account) string {
	what, label, _ := strings.Cut(ref, "|")
	label = html.UnescapeString(label)
	switch {
	case what == "":
		return ""
	case what[0] == '@':
		user := what[1:]
		if user == me.User {
			return "@" + me.Username
		}
		if label == "" {
			label = c.people.name(ctx, user)
		}
		if label == "" {
			label = user
		}
		return "@" + strings.TrimPrefix(label, "@")
	case what[0] == '#':
		if label == "" {
			label = what[1:]
		}
		return "#" + label
	case what[0] == '!':
		if label != "" {
			return label
		}
		special, about, _ := strings.Cut(what[1:], "^")
		if special == "subteam" && about != "" {
			return "@" + about // a group by its id: Slack tells no more
		}
		return "@" + special
	}
	url := html.UnescapeString(what)
	bare := strings.TrimPrefix(strings.TrimPrefix(url, "mailto:"), "tel:")
	if label == "" || label == bare || "http://"+label == url || "https://"+label == url {
		return bare
	}
	return label + " (" + url + ")"
}
