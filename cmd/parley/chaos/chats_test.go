package chaos

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/sqlbook"
	"parley/sessions"
)

// These are the chats to which every session may send messages.
const (
	sharedTelegram = "telegram:990"
	sharedSlack    = "slack:C990"
)

// A chat is a place where one person talks with the bot: a chat on Telegram, or a direct message or a thread on Slack
// or Discord. A thread is in a channel in which other people talk, too.
type chat struct {
	who   int // the person, by the same number on all platforms
	at    bus.Address
	opens bool // whether the next message begins the thread
	calls bool // whether the next message mentions the bot in an existing thread
}

// firstPerson is the first person who may talk to the bot and is not an owner.
const firstPerson = 2

// introduceDiscordChats adds the direct messages on Discord to the book, as if the people had talked to the bot before.
// The bot may not receive messages from unknown people until they write again.
func (f *fleet) introduceDiscordChats(all []*chat) {
	f.T.Helper()
	if len(all) == 0 {
		return
	}
	book, err := sqlbook.Open(f.T.Context(), f.pg.URL())
	if err != nil {
		f.T.Fatal(err)
	}
	defer book.Close()
	for _, p := range all {
		if p.at.Channel != "discord" || p.at.Thread != "" {
			continue
		}
		key, err := sessions.Key("main", p.at.Channel, p.at.Chat, "")
		if err == nil {
			err = book.RecordChat(f.T.Context(), channels.Chat{Address: p.at, Session: key, Person: p.person(), Seen: time.Now()})
		}
		if err != nil {
			f.T.Fatal(err)
		}
	}
}

// These constants name the kinds of chats. Chats of the kinds in channels share a channel with others; channelsEach is
// the number of channels on each of these platforms.
const (
	chatKinds        = 6
	inSlackChannel   = 3
	inDiscordChannel = 5
	channelsEach     = 5
)

// newChats returns n chats, a third of them on each platform.
func (f *fleet) newChats(n int) (all []*chat) {
	for i := range n {
		p := &chat{who: firstPerson + i}
		switch i % chatKinds {
		case 1:
			p.at = bus.Address{Channel: "slack", Chat: fmt.Sprint("D", p.who)}
		case inSlackChannel:
			p.at, p.opens = bus.Address{Channel: "slack", Chat: fmt.Sprint("C", p.who%channelsEach)}, true
		case 4:
			p.at = bus.Address{Channel: "discord", Chat: fmt.Sprint(500_000 + p.who)}
		case inDiscordChannel:
			p.at, p.calls = bus.Address{Channel: "discord", Chat: fmt.Sprint(700 + p.who%channelsEach), Thread: fmt.Sprint(600_000 + p.who)}, true
			f.dc.AddThread(p.at.Thread, p.at.Chat, "thread")
		default:
			p.at = bus.Address{Channel: "telegram", Chat: fmt.Sprint(p.who)}
		}
		all = append(all, p)
	}
	f.introduceDiscordChats(all)
	return all
}

// address returns the address of the chat, or "" for a thread that has not begun.
func (p *chat) address() string {
	if p.opens {
		return ""
	}
	return p.at.String()
}

// name returns the chat's address in the form in which a request contains it, or "?" for a thread that has not begun.
func (p *chat) name() string {
	if p.opens {
		return "?"
	}
	return p.at.String()
}

// discordChannel returns the Discord channel of the chat.
func (p *chat) discordChannel() string { return cmp.Or(p.at.Thread, p.at.Chat) }

// speak sends a message of the chat's person. In a channel of Slack or Discord, only a message that begins a thread
// mentions the bot.
func (f *fleet) speak(p *chat, text string) {
	user := fmt.Sprint("U", p.who)
	switch {
	case p.at.Channel == "telegram":
		f.Telegram.Say(int64(p.who), int64(p.who), text)
	case p.at.Channel == "discord":
		f.mu.Lock()
		if p.calls {
			p.calls, text = false, "<@"+discordtest.Bot+"> "+text
		}
		f.mu.Unlock()
		f.dc.Say(p.discordChannel(), fmt.Sprint(p.who), text)
	case p.opens:
		thread := f.sl.Say(p.at.Chat, user, "<@"+slacktest.Bot+"> "+text)
		f.mu.Lock()
		p.at.Thread, p.opens = thread, false
		f.mu.Unlock()
	case p.at.Thread != "":
		f.sl.Reply(p.at.Chat, p.at.Thread, user, text)
	default:
		f.sl.Say(p.at.Chat, user, text)
	}
}

// person returns the id of the person who talks in the chat.
func (p *chat) person() string {
	if p.at.Channel != "slack" {
		return fmt.Sprint(p.at.Channel, ":", p.who)
	}
	return fmt.Sprint("slack:U", p.who)
}

// A delivered message is one of the bot's messages, as people see it now.
type delivered struct {
	text    string
	at      time.Time // the time since which it has this text
	details string    // what the platform knows about the message, for a violation's text
}

// sentTo returns the bot's messages at an address, in order.
func (f *fleet) sentTo(address string) (all []delivered) {
	if address == "" {
		return nil
	}
	at, err := bus.ParseAddress(address)
	if err != nil {
		f.T.Error(err)
	}
	if at.Channel == "telegram" {
		chat, _ := strconv.ParseInt(at.Chat, 10, 64)
		for _, m := range f.Telegram.Sent(chat) {
			d := delivered{textOrFile(m.Text, "", nil), m.At, fmt.Sprintf("id %d, sent %s, was %q", m.ID, m.At.Format(time.RFC3339Nano), m.Earlier)}
			if !m.Edited.IsZero() {
				d.at = m.Edited
			}
			if m.File != nil {
				d.text = fileEntry(m.File.Name, m.File.Data)
			}
			all = append(all, d)
		}
		return all
	}
	if at.Channel == "discord" {
		for _, m := range f.dc.Sent(cmp.Or(at.Thread, at.Chat)) {
			all = append(all, delivered{textOrFile(m.Text, m.File, m.Data), m.Changed, fmt.Sprintf("id %s, nonce %s, sent %s, edited %d times", m.ID, m.Nonce, m.At.Format(time.RFC3339Nano), m.Edits)})
		}
		return all
	}
	for _, m := range f.sl.Sent(at.Chat) {
		if m.Thread == at.Thread {
			all = append(all, delivered{textOrFile(m.Text, m.File, m.Data), m.Changed, fmt.Sprintf("ts %s, key %s, edited %d times, grows: %v", m.TS, m.Key, m.Edits, m.Streaming)})
		}
	}
	return all
}

// textOrFile returns a message in the form in which the audit compares messages: its text, or the entry of its file.
func textOrFile(text, file string, content []byte) string {
	if file != "" {
		return fileEntry(file, content)
	}
	return withoutExcuse(normalizeTold(text))
}

// toldText returns the form in which the audit compares a text that the agent sent to another chat on a person's
// behalf.
func toldText(person, text string) string { return person + " has told: " + text }

// normalizeTold converts a message on a person's behalf from a platform's form to toldText's form. It returns other
// texts unchanged.
func normalizeTold(text string) string {
	head, words, ok := strings.Cut(text, " to tell you:\n\n")
	_, person, named := strings.Cut(strings.ReplaceAll(head, "`", ""), "(")
	person, _, closed := strings.Cut(strings.Replace(person, ") asks me", ") asked me", 1), ") asked me") // an older release says asks
	if !ok || !named || !closed {
		return text
	}
	return toldText(person, strings.TrimPrefix(words, "> "))
}
