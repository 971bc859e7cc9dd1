package platforms

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// A limit makes a platform refuse calls about one chat, or all calls, until some time is over.
type limit struct {
	wait time.Duration

	mu      sync.Mutex
	refuses func() bool // whether to refuse the next call, if the call does not come too early
	refused int
	until   time.Time // by the platform's clock; the program learns of it slightly later
	early   int       // the number of calls that came too early
}

func newLimit(wait time.Duration) *limit { return &limit{wait: wait, refuses: always} }

// These functions choose the calls that are refused: all, none, only the first, or every second one.
func always() bool { return true }

func never() bool { return false }

func once() func() bool {
	n := 0
	return func() bool { n++; return n == 1 }
}

func everySecond() func() bool {
	n := 0
	return func() bool { n++; return n%2 == 1 }
}

// met records a call. It returns the number of seconds after which the call may be repeated, or 0 if the call is
// allowed.
func (l *limit) met() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Before(l.until) {
		l.early++
	} else if !l.refuses() {
		return 0
	}
	l.refused++
	l.until = now.Add(l.wait)
	return int(l.wait / time.Second)
}

// from sets which calls are refused from now on.
func (l *limit) from(refuses func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = refuses
}

// state returns the number of refused calls, how many of these came too early, and the time before which no call may
// come.
func (l *limit) state() (refused, early int, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused, l.early, l.until
}

// inSlack and inDiscord apply the limit to a call of that platform.
func (l *limit) inSlack() slacktest.Act {
	return func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		if seconds := l.met(); seconds > 0 {
			slacktest.Limit(strconv.Itoa(seconds))(w, r, do)
			return
		}
		do.ServeHTTP(w, r)
	}
}

func (l *limit) inDiscord(global bool) discordtest.Act {
	return func(w http.ResponseWriter, r *http.Request, do http.Handler) {
		if seconds := l.met(); seconds > 0 {
			discordtest.Answer(http.StatusTooManyRequests, fmt.Sprintf(`{"message": "You are being rate limited.", "retry_after": %d, "global": %t}`, seconds, global))(w, r, do)
			return
		}
		do.ServeHTTP(w, r)
	}
}

// talkative plays a model that says what it is asked for in four messages.
func talkative(r agenttest.Request) agenttest.Response {
	name, at, _ := strings.Cut(r.Said(), " ")
	if r.Rounds() > 0 {
		return agenttest.Reply(name + " 4")
	}
	var calls []agenttest.ToolCall
	for i := range 3 {
		calls = append(calls, agenttest.ToolCall{Name: "message", Args: fmt.Sprintf(`{"channel":%q,"content":"%s %d"}`, at, name, i+1)})
	}
	return agenttest.Calls(calls...)
}

// A side is one platform in a storm. It sends a person's text to the chat with a number, and returns what the bot has
// sent there.
type side struct {
	say  func(chat int, text string)
	sent func(chat int) []string
	at   func(chat int) string
}

func (w *three) sides() map[string]side {
	return map[string]side{
		"slack": {
			func(chat int, text string) { w.slack.Say(slackChat(chat), "U1", text) },
			func(chat int) []string { return parleytest.SlackTexts(w.slack.Sent(slackChat(chat))) },
			func(chat int) string { return "slack:" + slackChat(chat) },
		},
		"discord": {
			func(chat int, text string) { w.discord.Say(discordChat(chat), fmt.Sprint(500+chat), text) },
			func(chat int) []string { return parleytest.DiscordTexts(w.discord.Sent(discordChat(chat))) },
			func(chat int) string { return "discord:" + discordChat(chat) },
		},
		"telegram": {
			func(chat int, text string) { w.Telegram.Say(telegramChat(chat), telegramChat(chat), text) },
			func(chat int) []string { return parleytest.Texts(w.Telegram.Sent(telegramChat(chat))) },
			func(chat int) string { return fmt.Sprint("telegram:", telegramChat(chat)) },
		},
	}
}

// ask makes the bot send four messages to a chat, and returns a function that reports whether they have arrived.
func (s side) ask(chat int) (arrived func() bool) {
	name := fmt.Sprint("m", chat)
	s.say(chat, name+" "+s.at(chat))
	return func() bool { return len(s.sent(chat)) >= 4 }
}

// inOrder checks that a chat has its four messages, each once and in order.
func (s side) inOrder(t *testing.T, chat int) {
	t.Helper()
	name := fmt.Sprint("m", chat)
	if got, want := strings.Join(s.sent(chat), ", "), fmt.Sprintf("%s 1, %[1]s 2, %[1]s 3, %[1]s 4", name); got != want {
		t.Errorf("%s was sent %q, want %q", s.at(chat), got, want)
	}
}

// If a platform refuses calls to some chats, the bot sends nothing there until the requested time is over, each time.
// All other chats get their messages meanwhile, on all platforms. No message is lost, repeated or out of order.
func TestLimitedChatsAreLeftAlone(t *testing.T) {
	t.Parallel()
	const limited, free = 2, 3 // chats on each platform
	w := newThree(t, talkative, "")
	limits := map[string]*limit{}
	for platform := range w.sides() {
		for chat := range limited {
			l := newLimit(time.Second)
			limits[fmt.Sprint(platform, chat)] = l
			switch platform {
			case "slack":
				w.slack.Fail("chat.postMessage", slackChat(chat), 0, l.inSlack())
			case "discord":
				w.discord.Fail("POST messages", discordChat(chat), 0, l.inDiscord(false))
			case "telegram":
				w.Telegram.Fail(telegramtest.Fault{Method: "sendMessage", Chat: telegramChat(chat), Limit: l.met})
			}
		}
	}
	p := w.serve()
	var held, rest []func() bool
	for _, s := range w.sides() {
		for chat := range limited {
			held = append(held, s.ask(chat))
		}
	}
	for name, l := range limits {
		parleytest.WaitFor(t, "a refusal in "+name, func() bool { refused, _, _ := l.state(); return refused > 0 })
	}
	for _, s := range w.sides() {
		for chat := range free {
			rest = append(rest, s.ask(limited+chat))
		}
	}
	for _, arrived := range rest {
		parleytest.WaitFor(t, "the chats that are free", arrived)
	}
	for i, arrived := range held {
		if arrived() {
			t.Errorf("chat %d has what its platform has refused", i)
		}
	}
	for _, l := range limits {
		l.from(everySecond())
	}
	for _, arrived := range held {
		parleytest.WaitFor(t, "the chats that were limited", arrived)
	}
	p.Stop()
	for _, s := range w.sides() {
		for chat := range limited + free {
			s.inOrder(t, chat)
		}
	}
	for name, l := range limits {
		if refused, early, _ := l.state(); early > 0 || refused < 4 {
			t.Errorf("%s: %d calls came before the time was over, of %d that were refused", name, early, refused)
		}
	}
}

// If Discord limits the whole account, the bot sends nothing to Discord until the time is over, and other platforms are
// not affected.
func TestALimitedAccountIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newThree(t, talkative, "")
	all := newLimit(2 * time.Second)
	w.discord.Fail("POST messages", "", 0, all.inDiscord(true))
	p := w.serve()
	sides := w.sides()
	first := sides["discord"].ask(0)
	parleytest.WaitFor(t, "a refusal", func() bool { refused, _, _ := all.state(); return refused > 0 })
	for _, platform := range []string{"slack", "telegram"} {
		for chat := range 3 {
			parleytest.WaitFor(t, platform+" to go on", sides[platform].ask(chat))
		}
	}
	all.from(never)
	parleytest.WaitFor(t, "the first chat", first)
	before, _, _ := all.state()
	all.from(once())
	sides["discord"].say(0, "m0 "+sides["discord"].at(0))
	parleytest.WaitFor(t, "the refusal to be known", func() bool {
		refused, _, until := all.state()
		return refused > before && w.Count("sessions.db", fmt.Sprintf("SELECT count(*) FROM pause WHERE topic = 'outbound/discord' AND until > %d", until.Add(-all.wait/2).UnixMicro())) == 1
	})
	var arrived []func() bool
	for chat := 1; chat < 4; chat++ {
		arrived = append(arrived, sides["discord"].ask(chat))
	}
	for _, come := range arrived {
		parleytest.WaitFor(t, "the other chats", come)
	}
	parleytest.WaitFor(t, "the first chat again", func() bool { return len(sides["discord"].sent(0)) == 8 })
	p.Stop()
	if _, early, _ := all.state(); early > 0 {
		t.Errorf("%d calls came before the time was over", early)
	}
	for chat := 1; chat < 4; chat++ {
		sides["discord"].inOrder(t, chat)
	}
}
