package platforms

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// These are the secrets of the configuration besides the tokens of the three platforms.
const (
	modelKey      = "sk-model-7d1f0c52aa9b"
	transcribeKey = "sk-transcribe-90ab11fe"
	searchKey     = "search-key-5e5e77c1d2"
	programToken  = "program-token-41c6d0e9a7b3"
	hookToken     = "hook-token-0f3b5a7799aa"
	hookSecret    = "hook-secret-c1d2e3f4a5b6"
	otherSlack    = "xoxb-2-of-another-workspace"
)

var allTokens = []string{
	modelKey, transcribeKey, searchKey, programToken, hookToken, hookSecret, signingSecret, otherSlack,
	parleytest.Token, parleytest.SlackBot, parleytest.SlackApp, parleytest.DiscordToken,
}

// telltale starts a server that refuses all requests, and that repeats the key of a request in its error.
func telltale(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the caller may be gone
		http.Error(w, fmt.Sprintf(`{"error":{"message":"wrong key: %s %s"}}`, r.Header.Get("Authorization"), r.Header.Get("X-Subscription-Token")), http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// leaky returns a model that searches and fails, and whose answers and errors contain the key.
func leaky(resets *atomic.Int32) agenttest.Script {
	return func(r agenttest.Request) agenttest.Response {
		switch {
		case r.Said() == "search" && r.Rounds() == 0:
			return agenttest.Calls(agenttest.ToolCall{Name: "web_search", Args: `{"query":"parley"}`})
		case r.Said() == "search":
			return agenttest.Reply("found " + strings.Join(r.Results(), " "))
		case r.Said() == "refuse":
			return agenttest.Fail(http.StatusUnauthorized, `{"error":{"message":"Incorrect API key provided: `+modelKey+`"}}`)
		case r.Said() == "break" && resets.Add(1) == 1:
			return agenttest.Reply("half of an answer").CutAfter(60).Reset()
		}
		return agenttest.Reply("you said " + r.Said() + " with " + modelKey)
	}
}

// Tokens never appear in logs, answers, streams, doctor's output, the model's prompts or stored files, even if calls to
// the platforms fail with errors that contain the tokens.
func TestTokensStayInside(t *testing.T) {
	t.Parallel()
	var resets atomic.Int32
	refuses, address := telltale(t), parleytest.FreeAddress(t)
	requests := slacktest.New(otherSlack, "xapp-none") // makes requests in place of sockets
	api, err := requests.Start("127.0.0.1:0")
	parleytest.Must(t, err)
	t.Cleanup(func() { _ = requests.Close() })
	t.Cleanup(requests.SendRequestsTo("http://"+address+"/channels/slack-http", signingSecret))
	w := newThree(t, leaky(&resets), fmt.Sprintf(`[log]
level = "debug"
[agents.main]
queue = "followup"
capabilities = ["file_read", "file_write", "network"]
[transcribe]
base_url = %[1]q
api_key = %q
model = "w"
[web]
search = "brave"
base_url = %[1]q
api_key = %[3]q
[tokens.ci]
token = %q
may = ["read"]
[webhooks.alertmanager]
token = %q
to = "telegram:3"
[webhooks.github]
secret = %q
to = "telegram:3"
[channels.slack-http]
platform = "slack"
api_url = %q
receive = "http"
public_url = "https://bot.example"
access = "open"
introduce = "never"
rate_limit = "none"
bot_token = %q
signing_secret = %q
`, refuses, transcribeKey, searchKey, programToken, hookToken, hookSecret, api, otherSlack, signingSecret))
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.NewReplacer(
		`api_key = "none"`, fmt.Sprintf("api_key = %q", modelKey), `listen = ""`, fmt.Sprintf("listen = %q", address),
		`rate_limit = "none"`, "rate_limit = \"none\"\nstream = \"off\"", // a message contains the answer
	).Replace(string(text))), 0o600))
	o := parleytest.HTTPAt(w.World, address)

	p := w.serve()
	w.say(t, "hello")
	var seen strings.Builder
	ends := w.watch(t, o, &seen)
	for _, words := range []string{"search", "refuse", "break"} {
		w.say(t, words)
	}
	w.harm()
	w.say(t, "and through faults")
	before := len(w.Telegram.Sent(2))
	w.Telegram.Attach(2, 2, "voice", "", []byte(recorded), nil)
	w.WaitSaid(2, before+1)
	requests.Fail("chat.postMessage", "", 1, slacktest.Status(500, "no "+otherSlack))
	requests.Say("D9", "U9", "hello")
	parleytest.SlackSaid(t, requests, "D9", 1)
	for _, path := range []string{"/channels/slack-http", "/webhooks/alertmanager", "/webhooks/github", "/v1/status"} {
		seen.WriteString(o.Ask("POST", path, `{"a":1}`, parleytest.Bearer("wrong")...).Body)
	}
	seen.WriteString(o.Ask("GET", "/metrics", "", o.OwnerHeader()...).Body + o.Ask("GET", "/v1/status", "", o.OwnerHeader()...).Body)
	ends()
	w.Telegram.ClearFaults()
	w.slack.ClearFaults()
	w.discord.ClearFaults()
	p.Stop()
	fmt.Fprintln(&seen, p.Stderr.String())

	w.Telegram.Fail(telegramtest.Fault{Act: telegramtest.Refuse, Status: 401, Description: "Unauthorized: " + parleytest.Token})
	w.slack.Fail("", "", 0, slacktest.Refuse("invalid_auth"))
	w.discord.Fail("", "", 0, discordtest.Answer(401, `{"message": "401: Unauthorized `+parleytest.DiscordToken+`", "code": 0}`))
	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"config", "check"}, {"serve"}, {"status"}} {
		cmd := w.Command(args...)
		cmd.Env = append(cmd.Env, w.env...)
		out, _ := cmd.CombinedOutput() // most of them find something wrong
		seen.Write(out)
	}
	for _, r := range w.Model.Requests() {
		seen.Write(r.Body)
	}
	fmt.Fprintln(&seen, w.Telegram.Sent(2), w.Telegram.Sent(3), w.Telegram.Sent(1), w.slack.Sent("D1"), w.slack.Whispers(), w.discord.Sent("51"), requests.Sent("D9"))
	for _, sign := range []string{"you said and through faults", "block_delta", "http_500", "execution_failed", "invalid_auth", "rejected the token", "parley_"} {
		if !strings.Contains(seen.String(), sign) {
			t.Errorf("nothing says %q: the test sees less than it should", sign)
		}
	}
	for _, token := range allTokens {
		if _, after, ok := strings.Cut(seen.String(), token); ok {
			before, _, _ := strings.Cut(seen.String(), token)
			t.Errorf("somebody sees %q: …%s[it]%s…", token, before[max(0, len(before)-300):], after[:min(len(after), 100)])
		}
		if found := parleytest.FilesWith(t, w.Home, token); len(found) > 0 {
			t.Errorf("%q is kept in %v", token, found)
		}
	}
}

// say makes a person say words on each platform, and waits for one more answer on each.
func (w *three) say(t *testing.T, words string) {
	t.Helper()
	telegram, slack, discord := len(w.Telegram.Sent(2)), len(w.slack.Sent("D1")), len(w.discord.Sent("51"))
	w.Telegram.Say(2, 2, words)
	w.slack.Say("D1", "U1", words)
	w.discord.Say("51", "501", words)
	w.WaitSaid(2, telegram+1)
	parleytest.SlackSaid(t, w.slack, "D1", slack+1)
	parleytest.DiscordSaid(t, w.discord, "51", discord+1)
}

// harm makes calls to each platform fail in every way, with errors that contain the token.
func (w *three) harm() {
	for _, f := range []telegramtest.Fault{
		{Method: "getUpdates", Act: telegramtest.Drop}, {Method: "getUpdates", Act: telegramtest.Refuse, Status: 500, Raw: "no /bot" + parleytest.Token + "/getUpdates"},
		{Method: "sendMessage", Act: telegramtest.Drop}, {Method: "sendMessage", Act: telegramtest.Refuse, Status: 500, Description: "bad " + parleytest.Token},
		{Method: "sendChatAction", Act: telegramtest.Drop}, {Method: "sendMessageDraft", Act: telegramtest.Drop},
		{Method: "getFile", Act: telegramtest.Drop}, {Method: "download", Act: telegramtest.Drop},
	} {
		f.Times = 1
		w.Telegram.Fail(f)
	}
	for _, method := range []string{"chat.postMessage", "users.info", "reactions.add", "apps.connections.open"} {
		w.slack.Fail(method, "", 1, slacktest.Status(500, "no "+parleytest.SlackBot+" "+parleytest.SlackApp))
		w.slack.Fail(method, "", 1, slacktest.Cut(false))
	}
	w.slack.CutSockets()
	for _, call := range []string{"POST messages", "POST typing", "PUT reactions"} {
		w.discord.Fail(call, "", 1, discordtest.Answer(500, "no Bot "+parleytest.DiscordToken))
		w.discord.Fail(call, "", 1, discordtest.Cut(false))
	}
	w.discord.CutGateway()
}

// watch starts clients that watch the conversations. The function that it returns ends them, and adds what they got to
// seen.
func (w *three) watch(t *testing.T, o *parleytest.HTTPWorld, seen *strings.Builder) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all []chan string
	for _, key := range []string{"main:telegram:2", "main:slack:D1", "main:discord:51"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.URL+"/v1/sessions/"+key+"/events", nil)
		parleytest.Must(t, err)
		req.Header.Set(o.OwnerHeader()[0], o.OwnerHeader()[1])
		res, err := o.Client.Do(req)
		parleytest.Must(t, err)
		if res.StatusCode != http.StatusOK {
			t.Fatalf("the events of %s: %s", key, res.Status)
		}
		got := make(chan string, 1)
		all = append(all, got)
		go func() {
			defer res.Body.Close()
			raw, _ := io.ReadAll(res.Body) // the stream ends when the client does
			got <- string(raw)
		}()
	}
	return func() {
		cancel()
		for _, got := range all {
			seen.WriteString(<-got)
		}
	}
}
