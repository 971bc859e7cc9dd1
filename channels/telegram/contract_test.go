package telegram_test

import (
	"log/slog"
	"net/http"
	"strconv"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
)

func TestTelegramKeepsTheContract(t *testing.T) {
	channelstest.RunChannel(t, channelstest.ChannelHarness{
		New:     func(t testing.TB) channelstest.FakePlatform { return newPlatform(t) },
		Secrets: []string{secret},
	})
}

// TestTelegramKeepsTheContractWithTheTLSClient runs the suite with the HTTP client that most accounts use.
func TestTelegramKeepsTheContractWithTheTLSClient(t *testing.T) {
	channelstest.RunChannel(t, channelstest.ChannelHarness{
		New: func(t testing.TB) channelstest.FakePlatform {
			p := newPlatform(t)
			p.client = telegram.ClientForTLS()
			return p
		},
		Secrets: []string{secret},
	})
}

// A platform lets the channel contract's suite play people who use Telegram: each chat's number is its id, and
// also the id of its person.
type platform struct {
	t testing.TB
	*telegramtest.Server
	*channelstest.FakeServer
	client *http.Client // the HTTP client of its channels; if nil, they make their own
}

func newPlatform(t testing.TB) *platform {
	p := &platform{t: t, Server: telegramtest.New(token, botName)}
	p.FakeServer = channelstest.StartServer(t, p.Server)
	return p
}

func (p *platform) Channel(log *slog.Logger) channels.Channel {
	c, err := telegram.New(telegram.Config{Name: "tg", Token: token, APIURL: p.URL, RateLimit: telegram.NoPace, Log: log, HTTP: p.client})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *platform) Address(chat int) bus.Address { return address(strconv.Itoa(chat)) }

func (p *platform) Say(chat int, text string) { p.Server.Say(int64(chat), int64(chat), text) }

func (p *platform) Unacknowledged() int { return p.Unconfirmed() }

func (p *platform) Shown(chat int) (shown []channelstest.ShownMessage) {
	for _, m := range p.Sent(int64(chat)) {
		one := channelstest.ShownMessage{ID: strconv.Itoa(m.ID), Text: m.Text}
		for _, b := range m.Buttons {
			one.Buttons = append(one.Buttons, b.Label)
		}
		if m.File != nil {
			one.File = m.File.Name
		}
		shown = append(shown, one)
	}
	return shown
}

func (p *platform) Press(chat int, id, label string) (told func() bool) {
	message, err := strconv.Atoi(id)
	if err != nil {
		p.t.Fatal(err)
	}
	press := p.PressButton(int64(chat), int64(chat), message, label)
	return func() bool { return p.PressResult(press).Answered }
}

func apiMethod(call channelstest.Call) string {
	return map[channelstest.Call]string{
		channelstest.Sending: "sendMessage", channelstest.Editing: "editMessageText", channelstest.Uploading: "sendDocument",
		channelstest.Showing: "sendChatAction", channelstest.Receiving: "getUpdates",
	}[call]
}

func (p *platform) Calls(call channelstest.Call) int { return p.Server.Calls(apiMethod(call)) }

func (p *platform) Break(call channelstest.Call, trouble channelstest.Trouble) {
	fault := map[channelstest.Trouble]telegramtest.Fault{
		channelstest.RateLimited:    {Status: http.StatusTooManyRequests, Description: channelstest.PersonWords, RetryAfter: int(channelstest.RetryAfter.Seconds())},
		channelstest.PlaceRefused:   {Status: http.StatusForbidden, Description: "Forbidden: bot was blocked by the user " + channelstest.PersonWords},
		channelstest.AccountRefused: {Status: http.StatusUnauthorized, Description: "Unauthorized " + channelstest.PersonWords},
		channelstest.ServerError:    {Status: http.StatusInternalServerError, Description: "Internal Server Error " + channelstest.PersonWords},
		channelstest.ProxyPage:      {Status: http.StatusForbidden, Raw: "<html>" + channelstest.PersonWords},
		channelstest.Garbage:        {Status: http.StatusOK, Raw: "<html>" + channelstest.PersonWords},
		channelstest.CutBefore:      {Act: telegramtest.Drop},
		channelstest.CutAfter:       {Act: telegramtest.Cut},
		channelstest.HangBefore:     {Act: telegramtest.Hang},
		channelstest.HangAfter:      {Act: telegramtest.Stall},
	}[trouble]
	fault.Method = apiMethod(call)
	p.Fail(fault)
}

func (p *platform) Mend() { p.ClearFaults() }

func (p *platform) Attach(chat int, text, name string, content []byte) {
	p.Server.Attach(int64(chat), int64(chat), "document", name, content, map[string]any{"caption": text})
}
