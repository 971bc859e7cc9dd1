package platforms

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

const signingSecret = "0123456789abcdef0123456789abcdef"

// If Slack delivers its events as HTTP requests, each message is answered once and in its chat's order, even through
// kills. The bot needs no app token.
func TestSlackOverHTTPThroughKills(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, parleytest.EchoModel)
	address := parleytest.FreeAddress(t)
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	changed := strings.NewReplacer(
		"app_token = \"${SLACK_APP_TOKEN}\"", "receive = \"http\"\nsigning_secret = \"${SLACK_SIGNING_SECRET}\"\npublic_url = \"http://bot.example\"",
		"[http]\nlisten = \"\"", fmt.Sprintf("[http]\nlisten = %q", address),
	).Replace(string(text))
	parleytest.Must(t, os.WriteFile(w.File, []byte(changed), 0o600))
	env := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_SIGNING_SECRET=" + signingSecret}
	t.Cleanup(sl.SendRequestsTo("http://"+address+"/channels/slack", signingSecret))

	const chats, each = 5, 6
	said := func(chat string) (all string) {
		for _, m := range sl.Sent(chat) {
			all += m.Text + "\n"
		}
		return all
	}
	p := w.Serve(env...)
	for i := range each {
		for chat := range chats {
			sl.Say(fmt.Sprint("D", chat), fmt.Sprint("U", chat), fmt.Sprintf("number %d", i))
		}
		if i%2 == 1 {
			// One answer may be to messages from before the kill and after it.
			parleytest.WaitFor(t, "an answer before the kill", func() bool { return strings.Contains(said("D0"), fmt.Sprint("number ", i-1)) })
			p.Kill()
			p = w.Serve(env...)
		}
	}
	for c := range chats {
		chat := fmt.Sprint("D", c)
		parleytest.WaitFor(t, "every answer", func() bool { return strings.Contains(said(chat), fmt.Sprint("number ", each-1)) })
		last := -1
		for i := range each {
			at := strings.Index(said(chat), fmt.Sprint("number ", i))
			if n := strings.Count(said(chat), fmt.Sprint("number ", i)); n != 1 || at < last {
				t.Errorf("chat %s: number %d is answered %d times, or out of order: %s", chat, i, n, said(chat))
			}
			last = at
		}
	}
	parleytest.WaitFor(t, "every event to be acknowledged", func() bool { return sl.Unacked() == 0 })
	if n := sl.Calls("apps.connections.open"); n != 0 {
		t.Errorf("%d sockets were asked for", n)
	}
}

// hearsRequests configures a world whose Telegram delivers updates as HTTP requests.
func hearsRequests(w *parleytest.World) {
	w.T.Helper()
	address := parleytest.FreeAddress(w.T)
	text, err := os.ReadFile(w.File)
	parleytest.Must(w.T, err)
	changed := strings.Replace(string(text), "rate_limit = \"none\"\n[http]\nlisten = \"\"",
		fmt.Sprintf("rate_limit = \"none\"\nreceive = \"http\"\n[http]\nlisten = %q\npublic_url = \"http://%s\"", address, address), 1)
	if changed == string(text) {
		w.T.Fatal("the configuration is another")
	}
	parleytest.Must(w.T, os.WriteFile(w.File, []byte(changed), 0o600))
}

// If Telegram delivers its updates as HTTP requests, each of many messages is answered once and in its chat's order,
// even through kills.
func TestTelegramOverHTTPThroughKills(t *testing.T) {
	t.Parallel()
	const chats, each, kills = 20, 20, 4
	w := parleytest.New(t, parleytest.EchoModel, "[limits]\nuser_turns_hour = 1000\n[agents.defaults]\nqueue = \"followup\"\n")
	hearsRequests(w)
	t.Cleanup(w.Telegram.EndWebhook)
	all := func(chat int64) string { return strings.Join(parleytest.Texts(w.Telegram.Sent(chat)), "\n") }
	p := w.Serve()
	for i := range each {
		for chat := range int64(chats) {
			w.Telegram.Say(chat+2, chat+2, fmt.Sprintf("number %d.", i))
		}
		if i%(each/kills) == each/kills-1 && i < each-1 {
			parleytest.WaitFor(t, "some answers", func() bool { return strings.Contains(all(2), fmt.Sprintf("number %d.", i/2)) })
			p.Kill()
			p = w.Serve()
		}
	}
	for chat := range int64(chats) {
		parleytest.WaitFor(t, "the last answer", func() bool { return strings.Contains(all(chat+2), fmt.Sprintf("number %d.", each-1)) })
	}
	again := 0
	for chat := range int64(chats) {
		last := -1
		for i := range each {
			n, at := strings.Count(all(chat+2), fmt.Sprintf("number %d.", i)), strings.Index(all(chat+2), fmt.Sprintf("number %d.", i))
			if n == 0 || at < last {
				t.Errorf("chat %d: number %d is answered %d times, or out of order: %s", chat, i, n, all(chat+2))
			}
			again, last = again+n-1, at
		}
	}
	if most := w.InterruptedSends(); again > most*each {
		t.Errorf("%d messages are answered twice, and %d sends were interrupted", again, most)
	}
	parleytest.WaitFor(t, "every update to be taken", func() bool { return w.Telegram.Unconfirmed() == 0 })
	if n := w.Telegram.Calls("getUpdates"); n != 0 {
		t.Errorf("it was polled %d times", n)
	}
}

// doctor reports that the webhook is registered once the bot has served, and that a registered webhook prevents
// polling.
func TestDoctorLooksAtTheWebhook(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	polling, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	hearsRequests(w)
	t.Cleanup(w.Telegram.EndWebhook)
	says := func(want string, code int) {
		t.Helper()
		out, errs, got := w.Run("doctor")
		if !strings.Contains(out+errs, want) || got != code {
			t.Errorf("doctor ends with %d and says\n%s%s\nwant %d and %q", got, out, errs, code, want)
		}
	}
	says("Telegram has another webhook, or none", 0)
	p := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	if out, errs, code := w.Run("doctor"); code != 0 || strings.Contains(out+errs, "webhook") {
		t.Errorf("while it serves: %d %s%s", code, out, errs)
	}
	p.Stop()
	says("can't reach http", 0)
	parleytest.Must(t, os.WriteFile(w.File, polling, 0o600))
	says("a webhook is set, so Parley can't poll", 1)
	p = w.Serve()
	w.Telegram.Say(2, 2, "by poll")
	w.WaitSaid(2, 2)
	p.Stop()
	if out, errs, code := w.Run("doctor"); code != 0 || strings.Contains(out+errs, "webhook") {
		t.Errorf("after polling: %d %s%s", code, out, errs)
	}
}

// balancer starts a load balancer that passes each request to the next server in turn, and to another one if that
// server does not answer. It counts the requests of each server.
func balancer(t *testing.T, servers []string, taken []atomic.Int64) string {
	t.Helper()
	var turn atomic.Int64
	client := &http.Client{Timeout: time.Minute}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller is gone
		}
		for range servers {
			i := int(turn.Add(1)) % len(servers)
			again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+servers[i]+r.URL.Path, bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			again.Header, again.Host = r.Header.Clone(), r.Host
			resp, err := client.Do(again)
			if err != nil {
				continue
			}
			defer resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				taken[i].Add(1)
			}
			w.WriteHeader(resp.StatusCode)
			_, _ = io.Copy(w, resp.Body) // the caller may be gone
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// Two processes behind a load balancer share Slack's requests, and one of them is killed meanwhile. Each message is
// answered once and in its chat's order.
func TestAFleetBehindALoadBalancer(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	w, sl := parleytest.NewSlack(t, parleytest.EchoModel)
	given, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	shared := fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n", redis, "test-"+rand.Text(), sqldbtest.New(t), t.TempDir())
	env := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_SIGNING_SECRET=" + signingSecret}
	var addresses []string
	var running []*parleytest.Process
	for range 2 {
		one := *w
		one.Home, one.File = t.TempDir(), filepath.Join(t.TempDir(), "parley.toml")
		address := parleytest.FreeAddress(t)
		text := strings.NewReplacer(
			"app_token = \"${SLACK_APP_TOKEN}\"", "receive = \"http\"\nsigning_secret = \"${SLACK_SIGNING_SECRET}\"\npublic_url = \"http://bot.example\"",
			"[http]\nlisten = \"\"", fmt.Sprintf("[http]\nlisten = %q", address),
		).Replace(string(given))
		parleytest.Must(t, os.WriteFile(one.File, []byte(text+shared), 0o600))
		addresses = append(addresses, address)
		p := one.Serve(env...)
		p.WaitServing()
		running = append(running, p)
	}
	taken := make([]atomic.Int64, len(addresses))
	t.Cleanup(sl.SendRequestsTo(balancer(t, addresses, taken)+"/channels/slack", signingSecret))
	const chats, each = 8, 8
	for i := range each {
		for chat := range chats {
			sl.Say(fmt.Sprint("D", chat), fmt.Sprint("U", chat), fmt.Sprintf("number %d.", i))
		}
		if i == each/2 {
			parleytest.SlackSaid(t, sl, "D0", 1)
			parleytest.WaitFor(t, "both to have taken something", func() bool { return taken[0].Load() > 0 && taken[1].Load() > 0 })
			running[1].Kill()
		}
	}
	for chat := range chats {
		all := func() (all string) {
			for _, m := range sl.Sent(fmt.Sprint("D", chat)) {
				all += m.Text + "\n"
			}
			return all
		}
		parleytest.WaitFor(t, "the last answer", func() bool { return strings.Contains(all(), fmt.Sprintf("number %d.", each-1)) })
		last := -1
		for i := range each {
			n, at := strings.Count(all(), fmt.Sprintf("number %d.", i)), strings.Index(all(), fmt.Sprintf("number %d.", i))
			if n != 1 || at < last {
				t.Errorf("chat %d: number %d is answered %d times, or out of order: %s", chat, i, n, all())
			}
			last = at
		}
	}
	for i := range taken {
		if taken[i].Load() == 0 {
			t.Errorf("process %d has taken nothing", i)
		}
	}
}

// doctor reports Telegram's privacy mode if the bot is configured to answer messages that do not mention it.
func TestDoctorLooksAtPrivacyMode(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	doctor := func(want bool) {
		t.Helper()
		if out, errs, code := w.Run("doctor"); strings.Contains(out+errs, "privacy mode is on") != want || code != 0 {
			t.Errorf("doctor ends with %d and says\n%s%s", code, out, errs)
		}
	}
	doctor(false) // a mention is needed anyway
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "[channels.telegram]\n", "[channels.telegram]\nmention = \"never\"\n", 1)), 0o600))
	doctor(true)
	w.Telegram.SwitchPrivacy(false)
	doctor(false)
}
