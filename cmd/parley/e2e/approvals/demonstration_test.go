package approvals

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
)

// researcher returns the model of the demonstration in the README: it searches, reads two pages, compares them with a
// script, and then wants to send the result to another channel.
func researcher(site string) agenttest.Script {
	return func(r agenttest.Request) agenttest.Response {
		results := r.Results()
		switch r.Rounds() {
		case 0:
			return agenttest.Calls(agenttest.ToolCall{Name: "web_search", Args: `{"query":"disk sizes of alpha and beta"}`})
		case 1:
			return agenttest.Calls(
				agenttest.ToolCall{Name: "web_fetch", Args: fmt.Sprintf(`{"url":"%s/alpha"}`, site)},
				agenttest.ToolCall{Name: "web_fetch", Args: fmt.Sprintf(`{"url":"%s/beta"}`, site)})
		case 2:
			return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"compare.sh","content":"echo \"beta holds $(($2 - $1)) GB more than alpha\"\n"}`})
		case 3:
			return agenttest.Calls(agenttest.ToolCall{Name: "exec_shell", Args: `{"command":"sh compare.sh 120 500"}`})
		case 4:
			if !strings.Contains(results[len(results)-1], "beta holds 380 GB more than alpha") {
				return agenttest.Reply("The script said " + results[len(results)-1])
			}
			return agenttest.Calls(agenttest.ToolCall{Name: "message", Args: `{"channel":"hardware","content":"beta holds 380 GB more than alpha"}`})
		default:
			return agenttest.Reply("beta holds 380 GB more than alpha, and #hardware knows: " + results[len(results)-1])
		}
	}
}

// The demonstration of the README works: a search, two fetches, a script in the sandbox, and an approval to send the
// result to another channel, which is required because the agent has read strangers' words.
func TestDemonstration(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/search":
			fmt.Fprintf(w, `{"results":[{"title":"Alpha","url":"http://%[1]s/alpha","content":"alpha's data sheet"},{"title":"Beta","url":"http://%[1]s/beta","content":"beta's data sheet"}]}`, r.Host)
		case "/alpha":
			fmt.Fprint(w, "<h1>Alpha</h1><p>Its disk holds 120 GB.</p>")
		case "/beta":
			fmt.Fprint(w, "<h1>Beta</h1><p>Its disk holds 500 GB.</p>")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(site.Close)
	sl := slacktest.New(parleytest.SlackBot, parleytest.SlackApp)
	slack, err := sl.Start("127.0.0.1:0")
	parleytest.Must(t, err)
	t.Cleanup(func() { sl.Close() })
	w := parleytest.New(t, researcher(site.URL), fmt.Sprintf(`
[channels.slack]
mode = "send"
bot_token = %q
api_url = %q
rate_limit = "none"
[targets]
hardware = ["slack:C001"]
[agents.main]
capabilities = ["file_read", "file_write", "shell", "network"]
may_message = ["hardware"]
[web]
search = "searxng"
base_url = %q
`, parleytest.SlackBot, slack, site.URL))
	w.Serve("PARLEY_LOCAL_WEB=1")
	w.Telegram.Say(2, 2, "Which of the two has the larger disk, alpha or beta? Tell #hardware.")
	request := w.WaitSaid(2, 1)[0]
	if !strings.Contains(request, "message needs approval") || !strings.Contains(request, "text that strangers may have written") || !strings.Contains(request, "380 GB more") {
		t.Fatalf("asked was %q", request)
	}
	if n := len(sl.Sent("C001")); n > 0 {
		t.Fatalf("%d messages went out unasked", n)
	}
	w.Telegram.Say(1, 1, "/approve "+parleytest.Requested(t, request))
	if got := parleytest.SlackSaid(t, sl, "C001", 1)[0].Text; !strings.Contains(got, "beta holds 380 GB more than alpha") {
		t.Errorf("the channel was told %q", got)
	}
	parleytest.WaitFor(t, "the answer", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n"), "and #hardware knows")
	})
	if out, stderr, code := w.Run("logs", "--filter", "tool", "--json"); code != 0 || strings.Count(out, `"result":"ok"`) != 6 || !strings.Contains(out, `"verdict":"ask","result":"ok"`) {
		t.Errorf("the audit has %s%s", out, stderr)
	}
	t.Log(strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n---\n"))
}
