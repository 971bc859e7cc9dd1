package slack_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

// Slack recommends shorter texts than it accepts, so the suite runs with the recommended length.
func TestSlackKeepsTheContract(t *testing.T) {
	channelstest.RunChannel(t, channelstest.ChannelHarness{
		New:               func(t testing.TB) channelstest.FakePlatform { return newPlatform(t) },
		Secrets:           []string{secret},
		MaxAcceptedLength: 40000,
	})
}

// A platform lets the channel contract's suite play people who use Slack. Chat 7 is the private chat of the
// user U7 with the bot.
type platform struct {
	t testing.TB
	*slacktest.Server
	*channelstest.FakeServer
	book *book
}

func newPlatform(t testing.TB) *platform {
	p := &platform{t: t, Server: slacktest.New(botToken, appToken), book: newBook()}
	p.KeepChatsTogether()
	p.FakeServer = channelstest.StartServer(t, p.Server)
	return p
}

func (p *platform) Channel(log *slog.Logger) channels.Channel {
	c, err := slack.New(slack.Config{
		Name: "slack", BotToken: botToken, AppToken: appToken, APIURL: p.URL, RateLimit: slack.NoPace, JoinedThreads: p.book, Cursors: p.book, Log: log,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *platform) Address(chat int) bus.Address { return address(fmt.Sprint("D", chat)) }

func (p *platform) Say(chat int, text string) {
	p.Server.Say(p.Address(chat).Chat, "U"+strconv.Itoa(chat), text)
}

func (p *platform) Unacknowledged() int { return p.Unacked() }

// Shown returns the messages in a chat. A file's id is the one that Slack gave to the file, not to its message.
func (p *platform) Shown(chat int) (shown []channelstest.ShownMessage) {
	for _, m := range p.Sent(p.Address(chat).Chat) {
		one := channelstest.ShownMessage{ID: m.TS, Text: m.Shown, File: m.File}
		if m.File != "" {
			one.Text = m.Text
		}
		for _, b := range m.Buttons {
			one.Buttons = append(one.Buttons, b.Label)
		}
		shown = append(shown, one)
	}
	return shown
}

func (p *platform) Press(chat int, id, label string) (told func() bool) {
	channelstest.Until(p.t, "a socket", func() bool { return p.Sockets() > 0 }) // without an open socket, a press fails immediately
	envelope := p.PressButton(p.Address(chat).Chat, "U"+strconv.Itoa(chat), id, label)
	return func() bool { return p.Acked(envelope) }
}

// TypingAddress returns the address of a thread, because Slack shows typing only in threads.
func (p *platform) TypingAddress(chat int) bus.Address {
	at := p.Address(chat)
	at.Thread = p.Server.Say(at.Chat, "U"+strconv.Itoa(chat), "a thread")
	return at
}

func apiMethod(call channelstest.Call) string {
	return map[channelstest.Call]string{
		channelstest.Sending: "chat.postMessage", channelstest.Editing: "chat.update", channelstest.Uploading: "files.completeUploadExternal",
		channelstest.Showing: "assistant.threads.setStatus",
		channelstest.Finding: "conversations.history", channelstest.Receiving: "apps.connections.open",
	}[call]
}

func (p *platform) Calls(call channelstest.Call) int { return p.Server.Calls(apiMethod(call)) }

func (p *platform) Break(call channelstest.Call, trouble channelstest.Trouble) {
	act := map[channelstest.Trouble]slacktest.Act{
		channelstest.RateLimited:    slacktest.Limit(strconv.Itoa(int(channelstest.RetryAfter.Seconds()))),
		channelstest.PlaceRefused:   slacktest.Refuse("is_archived"),
		channelstest.AccountRefused: slacktest.Refuse("token_revoked"),
		channelstest.ServerError:    slacktest.Status(http.StatusInternalServerError, channelstest.PersonWords),
		channelstest.ProxyPage:      slacktest.Status(http.StatusForbidden, "<html>"+channelstest.PersonWords),
		channelstest.Garbage:        slacktest.Status(http.StatusOK, "<html>"+channelstest.PersonWords),
		channelstest.CutBefore:      slacktest.Cut(false),
		channelstest.CutAfter:       slacktest.Cut(true),
		channelstest.HangBefore:     slacktest.Hang(false),
		channelstest.HangAfter:      slacktest.Hang(true),
	}[trouble]
	p.Fail(apiMethod(call), "", 0, act)
}

func (p *platform) Mend() { p.ClearFaults() }

func (p *platform) Attach(chat int, text, name string, content []byte) {
	p.Server.Attach(p.Address(chat).Chat, "U"+strconv.Itoa(chat), name, "text/plain", content, map[string]any{"text": text})
}
