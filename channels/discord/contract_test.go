package discord_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
)

func TestDiscordKeepsTheContract(t *testing.T) {
	channelstest.RunChannel(t, channelstest.ChannelHarness{
		New:     func(t testing.TB) channelstest.FakePlatform { return newPlatform(t) },
		Secrets: []string{secret},
	})
}

// A platform lets the channel contract's suite play people who use Discord, which here always shows nonces. It
// counts nothing as unacknowledged: what was not published is read again from the book's cursor on.
type platform struct {
	t testing.TB
	*discordtest.Server
	*channelstest.FakeServer
	book *book
}

func newPlatform(t testing.TB) *platform {
	p := &platform{t: t, Server: discordtest.New(token), book: newBook()}
	for chat := range 30 {
		p.book.chats = append(p.book.chats, channels.Chat{Address: p.Address(chat)})
	}
	p.ShowNonces = true
	p.FakeServer = channelstest.StartServer(t, p.Server)
	return p
}

func (p *platform) Channel(log *slog.Logger) channels.Channel {
	c := newChannel(p.t, discord.Config{Token: token, APIURL: p.URL, RateLimit: discord.NoPace, Log: log, Book: p.book})
	c.SetSaveInterval(10 * time.Millisecond)
	return c
}

func (p *platform) Address(chat int) bus.Address { return address(fmt.Sprint(1000 + chat)) }

func (p *platform) Say(chat int, text string) {
	p.Server.Say(p.Address(chat).Chat, strconv.Itoa(500+chat), text)
}

func (p *platform) Unacknowledged() int { return p.CountSince(p.book.savedCursor()) }

func (p *platform) Shown(chat int) (shown []channelstest.ShownMessage) {
	for _, m := range p.Sent(p.Address(chat).Chat) {
		one := channelstest.ShownMessage{ID: m.ID, Text: m.Text, File: m.File}
		for _, b := range m.Buttons {
			one.Buttons = append(one.Buttons, b.Label)
		}
		shown = append(shown, one)
	}
	return shown
}

func (p *platform) Press(chat int, id, label string) (told func() bool) {
	channelstest.Until(p.t, "a session", func() bool { return p.Connected() > 0 })
	press := p.PressButton(p.Address(chat).Chat, strconv.Itoa(500+chat), id, label)
	return func() bool { return p.InteractionResult(press).Answered }
}

// apiMethod returns the API call of a kind of call. Texts and files are posted by the same one.
func apiMethod(call channelstest.Call) string {
	return map[channelstest.Call]string{
		channelstest.Sending: "POST messages", channelstest.Uploading: "POST messages",
		channelstest.Editing: "PATCH messages", channelstest.Finding: "GET messages", channelstest.Receiving: "GET gateway",
		channelstest.Showing: "POST typing",
	}[call]
}

func (p *platform) Calls(call channelstest.Call) int { return p.Server.Calls(apiMethod(call)) }

func (p *platform) Break(call channelstest.Call, trouble channelstest.Trouble) {
	says := func(code int) string {
		return fmt.Sprintf(`{"message": %q, "code": %d}`, channelstest.PersonWords, code)
	}
	limit := fmt.Sprintf(`{"message": %q, "retry_after": %v, "global": false}`, channelstest.PersonWords, channelstest.RetryAfter.Seconds())
	act := map[channelstest.Trouble]discordtest.Act{
		channelstest.RateLimited:    discordtest.Answer(http.StatusTooManyRequests, limit),
		channelstest.PlaceRefused:   discordtest.Answer(http.StatusNotFound, says(10003)),
		channelstest.AccountRefused: discordtest.Answer(http.StatusUnauthorized, says(0)),
		channelstest.ServerError:    discordtest.Answer(http.StatusInternalServerError, says(0)),
		channelstest.ProxyPage:      discordtest.Answer(http.StatusForbidden, "<html>"+channelstest.PersonWords),
		channelstest.Garbage:        discordtest.Answer(http.StatusOK, "<html>"+channelstest.PersonWords),
		channelstest.CutBefore:      discordtest.Cut(false),
		channelstest.CutAfter:       discordtest.Cut(true),
		channelstest.HangBefore:     discordtest.Hang(false),
		channelstest.HangAfter:      discordtest.Hang(true),
	}[trouble]
	p.Fail(apiMethod(call), "", 0, act)
}

func (p *platform) Mend() { p.ClearFaults() }

func (p *platform) Attach(chat int, text, name string, content []byte) {
	p.Post(p.Address(chat).Chat, strconv.Itoa(500+chat), map[string]any{"content": text, "attachments": []any{p.AddFile(name, "text/plain", content)}})
}
