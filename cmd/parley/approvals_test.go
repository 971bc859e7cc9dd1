package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

var requestID = regexp.MustCompile(`approve ([a-z2-7]{10})`)

// requested is the id of the request that a text makes.
func requested(t *testing.T, text string) string {
	t.Helper()
	m := requestID.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%q is no request", text)
	}
	return m[1]
}

// writer writes a file once, and then says what came of it.
func writer(r agenttest.Request) agenttest.Response {
	if r.Rounds() == 0 {
		return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"a.txt","content":"approved"}`})
	}
	return agenttest.Reply("then: " + strings.Join(r.Results(), " "))
}

const asksAboutWriting = "\n[tools]\nask = [\"write_file\"]\n"

// An approval that is asked for on Slack is given on Telegram, after the process was
// killed and another has begun, and nobody else and nothing later decides.
func TestAskedOnSlackAndAnsweredOnTelegram(t *testing.T) {
	t.Parallel()
	w, sl := newSlackWorld(t, writer)
	api, err := w.Telegram.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	given, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("\n[channels.telegram]\nbot_token = %q\napi_url = %q\naccess = \"list\"\nallow_from = [2]\nowners = [1]\nrate_limit = \"none\"\n", parleytest.Token, api)
	if err := os.WriteFile(w.File, []byte(string(given)+more+asksAboutWriting), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_APP_TOKEN=" + parleytest.SlackApp}
	p := w.Serve(env...)
	sl.Say("D001", "U001", "write it")
	id := requested(t, slackSaid(t, sl, "D001", 1)[0].Text)
	p.Kill()
	p = w.Serve(env...)
	w.Telegram.Say(2, 2, "/approve "+id)
	if got := w.Said(2, 1)[0]; !strings.Contains(got, "may not decide") {
		t.Errorf("a guest was told %q", got)
	}
	sl.Say("D001", "U001", "!approve "+id)
	if got := slackSaid(t, sl, "D001", 2)[1].Text; !strings.Contains(got, "may not decide") {
		t.Errorf("whose turn it is was told %q", got)
	}
	p.Kill()
	w.Serve(env...)
	w.Telegram.Say(1, 1, "/approve "+id)
	if got := w.Said(1, 1)[0]; !strings.Contains(got, "approved by") {
		t.Errorf("the owner was told %q", got)
	}
	parleytest.WaitFor(t, "the reply on Slack", func() bool {
		for _, m := range sl.Sent("D001") {
			if strings.Contains(m.Text, "then: ") && strings.Contains(m.Text, "Successfully wrote") {
				return true
			}
		}
		return false
	})
	w.Telegram.Say(1, 1, "/deny "+id)
	if got := w.Said(1, 2)[1]; !strings.Contains(got, "decided already: approved by") {
		t.Errorf("a second answer was told %q", got)
	}
}

// What has changed since it was asked about is not run.
func TestAnApprovalIsForTheFilesAsTheyWere(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, writer, asksAboutWriting)
	w.Serve()
	w.Telegram.Say(2, 2, "write it")
	id := requested(t, w.Said(2, 1)[0])
	dir, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*"))
	if err != nil || len(dir) != 1 {
		t.Fatalf("the workspaces are %v, %v", dir, err)
	}
	if err := os.WriteFile(filepath.Join(dir[0], "a.txt"), []byte("somebody else's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, stderr, code := w.Run("approvals", "approve", id); code != 0 || !strings.Contains(out, "approved") {
		t.Errorf("parley approvals said %q, %q", out, stderr)
	}
	parleytest.WaitFor(t, "the refusal", func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n"), "has changed since")
	})
	if raw, err := os.ReadFile(filepath.Join(dir[0], "a.txt")); err != nil || string(raw) != "somebody else's" {
		t.Errorf("the file has %q, %v", raw, err)
	}
	if _, stderr, code := w.Run("approvals", "deny", id); code == 0 || !strings.Contains(stderr, "decided already") {
		t.Errorf("a second answer gave %d, %q", code, stderr)
	}
}
