package notifications

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// send runs parley send, checks its exit code, and returns its output.
func (o *ops) send(code int, args ...string) (out, errs string) {
	o.T.Helper()
	out, errs, got := o.Run(append([]string{"send"}, args...)...)
	if got != code {
		o.T.Errorf("send %q: exit %d, want %d; %q %q", args, got, code, out, errs)
	}
	return out, errs
}

func TestSendThroughServe(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	p := o.Up()
	if out, _ := o.send(parleytest.ExitDone, "--to", "ci", "no waiting"); !strings.Contains(out, "slack:C0BUILDS: queued") || !strings.Contains(out, "id m_") {
		t.Errorf("it printed %q", out)
	}
	out, _ := o.send(parleytest.ExitDone, "--to", "oncall", "--to", "telegram:42", "--wait", "to **all**")
	for _, to := range []string{"slack:C0ALERTS: sent", "ops-discord:1122: sent", "telegram:-10033: sent", "telegram:42: sent"} {
		if !strings.Contains(out, to) {
			t.Errorf("it printed %q, want %q in it", out, to)
		}
	}
	if got := o.Telegram.Sent(alertsTelegram); len(got) != 1 || got[0].Raw != "to <b>all</b>" {
		t.Errorf("Telegram has %+v", got)
	}
	out, _ = o.send(parleytest.ExitDone, "--json", "--to", "telegram:42", "--wait", "--", "-1 degrees, --wait and see")
	var status struct {
		ID           string
		Destinations []struct{ Address, State string }
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil || len(status.Destinations) != 1 || status.Destinations[0].State != "sent" {
		t.Errorf("as JSON it printed %q: %v", out, err)
	}
	if got := o.Telegram.Sent(fallbackChat); got[len(got)-1].Text != "-1 degrees, --wait and see" {
		t.Errorf("Telegram has %q", parleytest.Texts(got))
	}
	// The command reads standard input only if no text is given.
	piped := o.Command("send", "--to", "telegram:42", "--wait")
	piped.Stdin = strings.NewReader("one\ntwo\n")
	if out, err := piped.CombinedOutput(); err != nil {
		t.Errorf("piped: %v %q", err, out)
	}
	if got := o.Telegram.Sent(fallbackChat); got[len(got)-1].Text != "one\ntwo" {
		t.Errorf("Telegram has %q", parleytest.Texts(got))
	}
	for _, wrong := range [][]string{
		{"text without a place"}, {"--to", "ci", "--nosuch", "x"}, {"--to", "ci", "--file", filepath.Join(o.Home, "nosuch"), "x"},
		{"--to", "nosuch", "x"}, {"--to", "nosuch:1", "x"},
	} {
		if _, errs, code := o.Run(append([]string{"send"}, wrong...)...); code != parleytest.ExitUsage && code != parleytest.ExitFailed || errs == "" {
			t.Errorf("send %q: exit %d, %q", wrong, code, errs)
		}
	}
	if _, errs := o.send(parleytest.ExitFailed, "--to", "oncal", "x"); !strings.Contains(errs, `did you mean "oncall"?`) {
		t.Errorf("a slip of the pen is answered %q", errs)
	}
	p.Stop()
	if n := o.sends(); n != 1+4+1+1 {
		t.Errorf("%d messages were sent", n)
	}
}

func TestSendTellsOutcomes(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced+"\non_unknown = \"drop\"")
	o.slack.Fail("chat.postMessage", alertsSlack, 0, slacktest.Refuse("channel_not_found"))
	o.Telegram.Fail(telegramtest.Fault{Method: "sendMessage", Chat: alertsTelegram, Act: telegramtest.Cut})
	_ = o.discord.Close()
	p := o.Up()
	if _, errs := o.send(parleytest.ExitUnknown, "--to", "telegram:-10033", "--wait", "x"); !strings.Contains(errs, "telegram:-10033") {
		t.Errorf("an unknown outcome is told as %q", errs)
	}
	if _, errs := o.send(parleytest.ExitQueued, "--to", "ops-discord:1122", "--wait", "--timeout", "200ms", "x"); !strings.Contains(errs, "ops-discord:1122") {
		t.Errorf("waiting is told as %q", errs)
	}
	out, errs := o.send(parleytest.ExitFailed, "--to", "slack:"+alertsSlack, "--wait", "x")
	if !strings.Contains(errs, "slack:C0ALERTS") || !strings.Contains(out, "channel_not_found") {
		t.Errorf("a failure is told as %q %q", out, errs)
	}
	_, id, _ := strings.Cut(strings.TrimSpace(out), "\nid ")
	parleytest.WaitFor(t, "the fallback to have it", func() bool { // slightly after the failure
		return strings.Contains(o.Ask("GET", "/v1/messages/"+id, "", o.OwnerHeader()...).Body, `"fallback":{"address":"telegram:42","state":"sent"}`)
	})
	// The exit code is that of the worst outcome.
	o.send(parleytest.ExitUnknown, "--to", "telegram:-10033", "--to", "ops-discord:1122", "--to", "slack:C0BUILDS", "--wait", "--timeout", "3s", "x")
	o.send(parleytest.ExitFailed, "--to", "oncall", "--wait", "--timeout", "3s", "x")
	p.Kill()
}

func TestSendFilesAndKeys(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	p := o.Up()
	file := filepath.Join(t.TempDir(), "report.txt")
	if err := os.WriteFile(file, []byte("all is well"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.send(parleytest.ExitDone, "--to", "oncall", "--file", file, "--wait", "the report")
	if m := o.slack.Sent(alertsSlack); len(m) != 1 || m[0].File != "report.txt" || string(m[0].Data) != "all is well" || m[0].Text != "the report" {
		t.Errorf("Slack has %+v", m)
	}
	if m := o.discord.Sent(alertsDiscord); len(m) != 1 || m[0].File != "report.txt" || string(m[0].Data) != "all is well" || m[0].Text != "the report" {
		t.Errorf("Discord has %+v", m)
	}
	if m := o.Telegram.Sent(alertsTelegram); len(m) != 1 || m[0].File == nil || m[0].File.Name != "report.txt" || string(m[0].File.Data) != "all is well" || m[0].Text != "the report" {
		t.Errorf("Telegram has %+v", m)
	}
	o.send(parleytest.ExitDone, "--to", "oncall", "--key", "deploy-7", "--wait", "deploying")
	o.send(parleytest.ExitDone, "--to", "oncall", "--key", "deploy-7", "--wait", "deployed")
	o.send(parleytest.ExitDone, "--to", "oncall", "--key", "deploy-8", "--wait", "another")
	p.Stop()
	for where, got := range map[string][]string{
		"Slack": parleytest.SlackTexts(o.slack.Sent(alertsSlack)), "Discord": parleytest.DiscordTexts(o.discord.Sent(alertsDiscord)), "Telegram": parleytest.Texts(o.Telegram.Sent(alertsTelegram)),
	} {
		if strings.Join(got, "|") != "the report|deployed|another" {
			t.Errorf("%s has %q", where, got)
		}
	}
}

// Without a server, parley send delivers the message itself. What it cannot send waits for the next server.
func TestSendWithoutServe(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	if out, _ := o.send(parleytest.ExitDone, "--to", "oncall", "alone"); strings.Count(out, ": sent") != 3 {
		t.Errorf("it printed %q", out)
	}
	_ = o.discord.Close()
	if out, _ := o.send(parleytest.ExitQueued, "--to", "oncall", "--wait", "--timeout", "3s", "in vain"); !strings.Contains(out, "ops-discord:1122: queued") || strings.Count(out, ": sent") != 2 {
		t.Errorf("it printed %q", out)
	}
	if out, _, code := o.Run("status"); code != 0 || !strings.Contains(out, "no server is running") {
		t.Errorf("status: %d %q", code, out)
	}
	if _, err := o.discord.Start(o.at["channels.ops-discord"]); err != nil {
		t.Fatal(err)
	}
	p := o.Up()
	parleytest.WaitFor(t, "the rest", func() bool { return o.discord.Sends() >= 2 })
	p.Stop()
	for where, got := range map[string][]string{
		"Slack": parleytest.SlackTexts(o.slack.Sent(alertsSlack)), "Discord": parleytest.DiscordTexts(o.discord.Sent(alertsDiscord)), "Telegram": parleytest.Texts(o.Telegram.Sent(alertsTelegram)),
	} {
		if strings.Join(got, "|") != "alone|in vain" {
			t.Errorf("%s has %q", where, got)
		}
	}
	o.silent()
}

// Only a running server can pass a message to an agent. Without one, parley send says so, whether or not a channel is
// configured.
func TestSendToAnAgentWantsAServer(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"with a channel", "without one"} {
		w := parleytest.New(t, parleytest.EchoModel, "")
		if name == "without one" {
			parleytest.Must(t, os.WriteFile(w.File, []byte("[model]\nname = \"demo\"\n"), 0o600))
		}
		for _, to := range []string{"agent", "agent:main"} {
			out, errs, code := w.Run("send", "--to", to, "hello")
			if code != parleytest.ExitFailed || !strings.Contains(errs, "parley serve") || strings.Contains(errs, "configured") {
				t.Errorf("%s, to %s: exit code %d, %s%s", name, to, code, out, errs)
			}
		}
	}
}
