package approvals

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
)

// writer plays a model that writes a file once, and then repeats the result of the call.
func writer(r agenttest.Request) agenttest.Response {
	if r.Rounds() == 0 {
		return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"a.txt","content":"approved"}`})
	}
	return agenttest.Reply("then: " + strings.Join(r.Results(), " "))
}

const asksAboutWriting = "\n[tools]\nask = [\"write_file\"]\n"

// An approval that is requested on Slack can be given on Telegram, after the process was killed and started again.
// Nobody without the right can decide it, and a later decision changes nothing.
func TestAskedOnSlackAndAnsweredOnTelegram(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, writer)
	api, err := w.Telegram.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	given, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("\n[channels.telegram]\nintroduce = \"never\"\nbot_token = %q\napi_url = %q\naccess = \"list\"\nallow_from = [2]\nowners = [1]\nrate_limit = \"none\"\n", parleytest.Token, api)
	if err := os.WriteFile(w.File, []byte(string(given)+more+asksAboutWriting), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_APP_TOKEN=" + parleytest.SlackApp}
	p := w.Serve(env...)
	sl.Say("D001", "U001", "write it")
	id := parleytest.Requested(t, parleytest.SlackSaid(t, sl, "D001", 1)[0].Text)
	p.Kill()
	p = w.Serve(env...)
	w.Telegram.Say(2, 2, "/approve "+id)
	if got := w.WaitSaid(2, 1)[0]; !strings.Contains(got, "can't decide") {
		t.Errorf("a guest was told %q", got)
	}
	sl.Say("D001", "U001", "!approve "+id)
	if got := parleytest.SlackSaid(t, sl, "D001", 2)[1].Text; !strings.Contains(got, "can't decide") {
		t.Errorf("whose turn it is was told %q", got)
	}
	p.Kill()
	w.Serve(env...)
	w.Telegram.Say(1, 1, "/approve "+id)
	if got := w.WaitSaid(1, 1)[0]; !strings.Contains(got, "approved by") {
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
	if got := w.WaitSaid(1, 2)[1]; !strings.Contains(got, "already been decided: approved by") {
		t.Errorf("a second answer was told %q", got)
	}
}

// label returns the label of the button with this text below a message on Slack.
func label(t *testing.T, m slacktest.Message, says string) string {
	t.Helper()
	for _, b := range m.Buttons {
		if strings.HasPrefix(b.Value, says) {
			return b.Label
		}
	}
	t.Fatalf("%+v has no button for %q", m, says)
	return ""
}

// A button decides a request as a command does. A stranger, and a user who may not decide, get a refusal. When the
// owner decides, the buttons disappear on both platforms, and a later press changes nothing.
func TestButtonsDecideOnSlackAndTelegram(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, writer)
	api, err := w.Telegram.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	given, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("\n[channels.telegram]\nintroduce = \"never\"\nbot_token = %q\napi_url = %q\naccess = \"list\"\nallow_from = [2]\nowners = [1]\nrate_limit = \"none\"\n"+
		"\n[approvals]\nto = [\"telegram:1\", \"telegram:-5\", \"slack:C0OPS\"]\n", parleytest.Token, api)
	if err := os.WriteFile(w.File, []byte(string(given)+more+asksAboutWriting), 0o600); err != nil {
		t.Fatal(err)
	}
	sl.AddUser(slacktest.User{ID: "UGUEST", Name: "Guest", Guest: true})
	env := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_APP_TOKEN=" + parleytest.SlackApp}
	w.Serve(env...)
	sl.Say("D001", "U001", "write it")
	onSlack := parleytest.SlackSaid(t, sl, "C0OPS", 1)[0]
	approve := label(t, onSlack, "/approve ")
	w.WaitSaid(1, 1)
	w.WaitSaid(-5, 1)
	inGroup := w.Telegram.Sent(-5)[0]
	if onSlack.Shown != onSlack.Text || len(inGroup.Buttons) != 3 {
		t.Errorf("asked by %+v and %+v", onSlack, inGroup)
	}

	sl.PressButton("C0OPS", "UGUEST", onSlack.TS, approve)
	parleytest.WaitFor(t, "the stranger's refusal on Slack", func() bool { return len(sl.Whispers()) > 0 })
	press := w.Telegram.PressButton(-5, 9, inGroup.ID, "Approve")
	parleytest.WaitFor(t, "the stranger's refusal on Telegram", func() bool { return w.Telegram.PressResult(press).Text != "" })
	sl.PressButton("C0OPS", "U001", onSlack.TS, approve)
	if got := parleytest.SlackSaid(t, sl, "C0OPS", 2)[1].Text; !strings.Contains(got, "can't decide") {
		t.Errorf("whose turn it is was told %q", got)
	}
	w.Telegram.PressButton(-5, 2, inGroup.ID, "Approve")
	if got := w.WaitSaid(-5, 2)[1]; !strings.Contains(got, "can't decide") {
		t.Errorf("a guest was told %q", got)
	}

	w.Telegram.PressButton(-5, 1, inGroup.ID, "Approve")
	parleytest.WaitFor(t, "the buttons to go", func() bool {
		for _, chat := range []int64{1, -5} {
			if m := w.Telegram.Sent(chat)[0]; len(m.Buttons) > 0 || !strings.Contains(m.Text, "Approved by User 1") {
				return false
			}
		}
		m := sl.Sent("C0OPS")[0]
		return len(m.Buttons) == 0 && strings.Contains(m.Shown, "Approved by User 1")
	})
	parleytest.WaitFor(t, "the reply on Slack", func() bool {
		for _, m := range sl.Sent("D001") {
			if strings.Contains(m.Text, "then: ") && strings.Contains(m.Text, "Successfully wrote") {
				return true
			}
		}
		return false
	})
	// The apps of these people have not shown the edit yet.
	w.Telegram.Press(-5, 1, inGroup.ID, inGroup.Buttons[2].Data, nil)
	if got := w.WaitSaid(-5, 3)[2]; !strings.Contains(got, "already been decided: approved by User 1") {
		t.Errorf("a second press was told %q", got)
	}
}

// rewriteScript changes a file of the workspace that no argument of the call names.
func rewriteScript(dir string) error {
	return os.WriteFile(filepath.Join(dir, "sub", "run.sh"), []byte("exit 1"), 0o600)
}

// A call does not run if something changed after people were asked about it, and the bot tells them so.
func TestAnApprovalIsForWhatItWasAskedAbout(t *testing.T) {
	t.Parallel()
	const write, script = `{"path":"a.txt","content":"approved"}`, `{"command":"cd sub && cat run.sh"}`
	tests := map[string]struct {
		tool, args string
		change     func(dir string) error
	}{
		"a file": {"write_file", write, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "a.txt"), []byte("somebody else's"), 0o600)
		}},
		"the directory": {"write_file", write, func(dir string) error {
			if err := os.Rename(dir, dir+".old"); err != nil {
				return err
			}
			return os.CopyFS(dir, os.DirFS(dir+".old"))
		}},
		"a file of another folder": {"exec_shell", script, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "sub", "run.sh"), []byte("exit 1"), 0o600)
		}},
		"a file to be sent": {"message", `{"channel":"telegram:2","content":"look","files":["sub/run.sh"]}`, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "sub", "run.sh"), []byte("exit 1"), 0o600)
		}},
		"a file that a pattern names":          {"exec_shell", `{"command":"sh ./sub/r*.sh"}`, rewriteScript},
		"a file that a variable names":         {"exec_shell", `{"command":"F=run; sh sub/$F.sh"}`, rewriteScript},
		"what make reads":                      {"exec_shell", `{"command":"make"}`, rewriteScript},
		"what a program imports":               {"exec_shell", `{"command":"python3 -c 'import mod'"}`, rewriteScript},
		"what a script reads":                  {"spawn", `{"command":"sh","args":["-c",". ./*/run.sh"]}`, rewriteScript},
		"what is new beside what is named":     {"exec_shell", `{"command":"python3 sub/run.sh"}`, func(dir string) error { return os.WriteFile(filepath.Join(dir, "mod.py"), nil, 0o600) }},
		"a file below a folder that is copied": {"exec_shell", `{"command":"cp -r sub other"}`, rewriteScript},
		"what git commits":                     {"git_commit", `{"message":"all of it"}`, rewriteScript},
		"a folder": {"exec_shell", script, func(dir string) error {
			sub := filepath.Join(dir, "sub")
			if err := os.Rename(sub, sub+".old"); err != nil {
				return err
			}
			return os.CopyFS(sub, os.DirFS(sub+".old"))
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := func(r agenttest.Request) agenttest.Response {
				switch r.Rounds() {
				case 0:
					return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"sub/run.sh","content":"exit 0"}`})
				case 1:
					return agenttest.Calls(agenttest.ToolCall{Name: test.tool, Args: test.args})
				}
				return agenttest.Reply("then: " + r.Results()[1])
			}
			w := parleytest.New(t, model, "\n[tools]\nask = [\"write_file(a.txt)\", \"exec_shell\", \"spawn\", \"git_commit\", \"message\"]\n[agents.defaults]\ncapabilities = [\"file_read\", \"file_write\", \"shell\", \"git\"]\n")
			w.Serve()
			w.Telegram.Say(2, 2, "do it")
			id := parleytest.Requested(t, w.WaitSaid(2, 1)[0])
			dirs, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*"))
			if err != nil || len(dirs) != 1 {
				t.Fatalf("the workspaces are %v, %v", dirs, err)
			}
			if err := test.change(dirs[0]); err != nil {
				t.Fatal(err)
			}
			if out, stderr, code := w.Run("approvals", "approve", id); code != 0 || !strings.Contains(out, "approved") {
				t.Errorf("parley approvals said %q, %q", out, stderr)
			}
			said := func() string { return strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n") }
			parleytest.WaitFor(t, "the refusal", func() bool { return strings.Contains(said(), "has changed since") })
			if !strings.Contains(said(), "but I didn't run it: a file, the directory, the arguments or the tool itself has changed") {
				t.Errorf("people were told %q", said())
			}
			if raw, err := os.ReadFile(filepath.Join(dirs[0], "a.txt")); err == nil && string(raw) == "approved" {
				t.Error("it ran")
			}
			if _, stderr, code := w.Run("approvals", "deny", id); code == 0 || !strings.Contains(stderr, "already been decided") {
				t.Errorf("a second answer gave %d, %q", code, stderr)
			}
		})
	}
}

// A request that nobody answers in time expires, and the bot says so. A later answer changes nothing.
func TestARequestExpires(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, writer, asksAboutWriting+"[approvals]\nexpires = \"3s\"\n") // the server rounds the expiry down to whole seconds
	p := w.Serve()
	w.Telegram.Say(2, 2, "write it")
	id := parleytest.Requested(t, w.WaitSaid(2, 1)[0])
	p.Kill() // the next process expires the request
	w.Serve()
	said := func() string { return strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n") }
	parleytest.WaitFor(t, "the end of the request", func() bool {
		return strings.Contains(said(), "Expired: nobody answered in time") && strings.Contains(said(), `"code":"timeout"`)
	})
	w.Telegram.Say(1, 1, "/approve "+id)
	if got := w.WaitSaid(1, 1)[0]; !strings.Contains(got, "already been decided: expired") {
		t.Errorf("a late answer was told %q", got)
	}
	if found, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*", "a.txt")); err != nil || len(found) > 0 {
		t.Errorf("it wrote %v, %v", found, err)
	}
}

// An approval stays valid if the same turn writes a file before people are asked, or if a file changes that the command
// line does not name.
func TestAnApprovalOutlastsWhatItIsNotAbout(t *testing.T) {
	t.Parallel()
	write := agenttest.ToolCall{Name: "write_file", Args: `{"path":"beside.txt","content":"by the same step"}`}
	tests := map[string]struct {
		calls  []agenttest.ToolCall
		change func(dir string) error
		want   string
	}{
		"a file that the same step writes": {
			[]agenttest.ToolCall{{Name: "exec_shell", Args: `{"command":"for f in b*.txt; do cat $f; done"}`}, write}, func(string) error { return nil }, "by the same step",
		},
		"the same content again": {
			[]agenttest.ToolCall{write, {Name: "exec_shell", Args: `{"command":"cat b*.txt"}`}},
			func(dir string) error {
				return os.Chtimes(filepath.Join(dir, "beside.txt"), time.Time{}, time.Now().Add(-time.Hour))
			}, "by the same step",
		},
		"a file that a plain line does not name": {
			[]agenttest.ToolCall{write, {Name: "exec_shell", Args: `{"command":"cat beside.txt"}`}},
			func(dir string) error { return os.WriteFile(filepath.Join(dir, "other.txt"), []byte("x"), 0o600) }, "by the same step",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := func(r agenttest.Request) agenttest.Response {
				if r.Rounds() == 0 {
					return agenttest.Calls(test.calls...)
				}
				return agenttest.Reply("then: " + strings.Join(r.Results(), " "))
			}
			w := parleytest.New(t, model, "\n[tools]\nask = [\"exec_shell\"]\n[agents.defaults]\ncapabilities = [\"file_read\", \"file_write\", \"shell\"]\n")
			p := w.Serve()
			w.Telegram.Say(2, 2, "do it")
			id := parleytest.Requested(t, w.WaitSaid(2, 1)[0])
			p.Kill() // the next process compares with what this process has recorded
			dirs, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*"))
			if err != nil || len(dirs) != 1 {
				t.Fatalf("the workspaces are %v, %v", dirs, err)
			}
			parleytest.Must(t, test.change(dirs[0]))
			w.Serve()
			w.Telegram.Say(1, 1, "/approve "+id)
			said := func() string { return strings.Join(parleytest.Texts(w.Telegram.Sent(2)), "\n") }
			parleytest.WaitFor(t, "what came of it", func() bool { return strings.Contains(said(), "then: ") })
			if strings.Contains(said(), "has changed since") || !strings.Contains(said(), `"stdout":"`+test.want) {
				t.Errorf("people were told %q", said())
			}
		})
	}
}
