package chat

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

func TestServeAnswersManyChatsInOrder(t *testing.T) {
	t.Parallel()
	const chats, each = 200, 3
	w := parleytest.New(t, parleytest.EchoModel, "\n[agents.defaults]\nqueue = \"followup\"\n")
	p := w.Serve()
	for n := range each {
		for c := range chats {
			w.Telegram.Say(int64(c+2), int64(c+2), fmt.Sprintf("number %d", n))
		}
	}
	const want = "number 0\n\nnumber 1\n\nnumber 2"
	for c := range chats {
		// Messages that wait behind a turn are answered together.
		var got string
		parleytest.WaitFor(t, "all of a chat to be answered", func() bool {
			all := parleytest.Texts(w.Telegram.Sent(int64(c + 2)))
			for i := range all {
				all[i] = strings.TrimPrefix(all[i], "you said ")
			}
			got = strings.Join(all, "\n\n")
			return strings.Count(got, "number") >= each
		})
		if got != want {
			t.Errorf("chat %d was answered %q, want %q", c+2, got, want)
		}
	}
	p.Stop()
	if got := w.Telegram.Sends(); got > chats*each {
		t.Errorf("%d messages were sent, want %d at most", got, chats*each)
	}
}

func TestSlowChatDelaysNobodyAndBothMessagesAreHonoured(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var once sync.Once
	defer once.Do(func() { close(release) })
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() == "slow" {
			return agenttest.Reply("slow answer").WaitFor(release)
		}
		return parleytest.EchoModel(r)
	}, "")
	w.Serve()
	w.Telegram.Say(2, 2, "slow")
	parleytest.WaitFor(t, "the slow model call", func() bool { return w.Model.Asked() == 1 })
	w.Telegram.Say(2, 2, "and more")
	for c := int64(3); c < 23; c++ {
		w.Telegram.Say(c, c, "quick")
	}
	for c := int64(3); c < 23; c++ {
		w.WaitSaid(c, 1)
	}
	if got := w.Telegram.Sent(2); len(got) != 0 {
		t.Fatalf("the slow chat has %q already", parleytest.Texts(got))
	}
	once.Do(func() { close(release) })
	if got := w.WaitSaid(2, 2); got[0] != "slow answer" || got[1] != "you said and more" {
		t.Errorf("slow chat got %q", got)
	}
}

func TestKilledAtEachPointOfServe(t *testing.T) {
	t.Parallel()
	points := []string{
		"c1:before", "c1", "c3:before/2", "c3/2", "c4:before/4", "c4/2", "c4/3", "c4/4", "c4:held/3", "c4:held/4",
		"c5:before/2", "c5:before/3", "c5:before/4", "c5/4", "c6:before", "c6", "c7:published", "c7", "settled",
		"send:begun", "send:held", "send:sent", "send:marked", "send:settled", "send:sent/2",
	}
	for _, at := range points {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, parleytest.ToolsModel, "\n[agents.main]\nmay_message = [\"telegram:3\"]\n")
			w.Telegram.Say(2, 2, "go")
			w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			p := w.Serve()
			w.WaitSaid(2, 1)
			w.WaitSaid(3, 1)
			p.Stop()
			answers, hellos := parleytest.Texts(w.Telegram.Sent(2)), parleytest.Texts(w.Telegram.Sent(3))
			if n := len(answers) + len(hellos); n > 2+w.InterruptedSends() {
				t.Errorf("answers %q and messages %q; the book knows of %d sends that were cut off", answers, hellos, w.InterruptedSends())
			}
			for _, want := range []string{"one three", "remembered", "Successfully wrote", `"sent"`} {
				if !strings.Contains(answers[0], want) {
					t.Errorf("the answer %q lacks %q", answers[0], want)
				}
			}
			if n := strings.Count(answers[0], "remembered"); n != 1 {
				t.Errorf("memory was written %d times: %q", n, answers[0])
			}
		})
	}
}

func TestKilledWithManyTurnsInFlight(t *testing.T) {
	t.Parallel()
	const chats = 50
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() < 2 {
			return agenttest.Calls(agenttest.ToolCall{Name: "memory_write", Args: fmt.Sprintf(`{"content":"round %d"}`, r.Rounds())}).After(20 * time.Millisecond)
		}
		return agenttest.Reply("answer to " + r.Said()).After(20 * time.Millisecond)
	}, "")
	for c := range chats {
		w.Telegram.Say(int64(c+2), int64(c+2), "one")
	}
	for range 3 { // a turn that is interrupted a fourth time without progress is given up
		sends := w.Telegram.Sends()
		asked := w.Model.Asked()
		p := w.Serve()
		parleytest.WaitFor(t, "some progress", func() bool { return w.Telegram.Sends() > sends || w.Model.Asked() > asked+chats })
		p.Kill()
	}
	p := w.Serve()
	for c := range chats {
		w.WaitSaid(int64(c+2), 1)
	}
	p.Stop()
	twice, cut := 0, w.InterruptedSends()
	for c := range chats {
		got := parleytest.Texts(w.Telegram.Sent(int64(c + 2)))
		if got[0] != "answer to one" {
			t.Errorf("chat %d got %q", c+2, got)
		}
		twice += len(got) - 1
	}
	if twice > cut {
		t.Errorf("%d answers were sent again, and the book knows of %d sends that were cut off", twice, cut)
	}
}

func TestMessageReachesPairedChatsAndNoOthers(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 && strings.HasPrefix(r.Said(), "tell ") {
			return agenttest.Calls(agenttest.ToolCall{Name: "message", Args: fmt.Sprintf(`{"channel":"telegram","chat_id":%q,"content":"psst"}`, strings.TrimPrefix(r.Said(), "tell "))})
		}
		return agenttest.Reply("said: " + strings.Join(r.Results(), ""))
	}, "")
	// A person is paired: 5000 asks the bot, gets a code, and is approved at the terminal.
	text, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	paired := strings.NewReplacer(`access = "list"`, `access = "pairing"`).Replace(string(text))
	before, _, _ := strings.Cut(paired, "allow_from")
	_, after, _ := strings.Cut(paired, "owners")
	if err := os.WriteFile(w.File, []byte(before+"owners"+after), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Serve()
	w.Telegram.Say(5000, 5000, "let me in, my secret is xyzzy-stranger")
	refusal := w.WaitSaid(5000, 1)[0]
	_, code, ok := strings.Cut(refusal, "pairing approve ")
	if !ok || !strings.Contains(refusal, "telegram:5000") {
		t.Fatalf("the stranger was told %q", refusal)
	}
	if found := parleytest.FilesWith(t, w.Home, "xyzzy-stranger"); len(found) > 0 {
		t.Errorf("what the stranger said is in %v", found)
	}
	if out, errs, exit := w.Run("pairing", "approve", strings.TrimSpace(code)); exit != 0 || !strings.Contains(out, "telegram:5000") {
		t.Fatalf("approve: %d %q %q", exit, out, errs)
	}
	w.Telegram.Say(5000, 5000, "hello")
	w.WaitSaid(5000, 2)

	// From a group, a paired person can have the agent send a message to their own private chat. Nobody else can, not
	// even the owner.
	const group = -77
	w.Telegram.Say(group, 5000, "@parleybot tell 5000")
	if got := w.WaitSaid(5000, 3); got[2] != "User 5000 (telegram:5000) asked me, in telegram:-77, to tell you:\n\npsst" {
		t.Errorf("the paired chat got %q", got)
	}
	w.WaitSaid(group, 1)
	for i, chat := range []string{"5000", "777"} {
		w.Telegram.Say(parleytest.Owner, parleytest.Owner, "tell "+chat) // a message during a turn would join the turn
		got := w.WaitSaid(parleytest.Owner, i+1)[i]
		if other := strings.Count(got, "telegram:5000"); !strings.Contains(got, "permission_denied") || !strings.Contains(got, "These may be: telegram:1.") || other > 0 && chat != "5000" {
			t.Errorf("a message to %s: %q, want it refused, naming what the owner may reach", chat, got)
		}
	}
	if out, _, _ := w.Run("pairing", "list"); !strings.Contains(out, "telegram:5000") {
		t.Errorf("pairing list: %q", out)
	}
	if out, _, _ := w.Run("chats"); !strings.Contains(out, "telegram:5000") || !strings.Contains(out, "main:telegram:1") {
		t.Errorf("chats: %q", out)
	}
	if _, _, exit := w.Run("pairing", "revoke", "telegram:5000"); exit != 0 {
		t.Errorf("revoke: %d", exit)
	}
	w.Telegram.Say(5000, 5000, "still there?")
	parleytest.WaitFor(t, "the message to be confirmed", func() bool { return w.Telegram.Unconfirmed() == 0 })
}

func TestOwnerByLink(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	text, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "access =")
	if err := os.WriteFile(w.File, []byte(before+"rate_limit = \"none\"\n[http]\nlisten = \"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.Serve()
	const link = "https://t.me/parleybot?start="
	parleytest.WaitFor(t, "the owner's link", func() bool { return strings.Contains(p.Stderr.String(), link) })
	_, rest, _ := strings.Cut(p.Stderr.String(), link)
	code, _, _ := strings.Cut(rest, `"`) // the end of the record's text
	w.Telegram.Say(7, 7, "/start WRONGCODEWRONGCODE")
	w.WaitSaid(7, 1)
	w.Telegram.Say(8, 8, "/start "+code)
	if got := w.WaitSaid(8, 1)[0]; !strings.Contains(got, "own") {
		t.Errorf("the owner was told %q", got)
	}
	w.Telegram.Say(8, 8, "hello")
	if got := w.WaitSaid(8, 2)[1]; got != "you said hello" {
		t.Errorf("the owner got %q", got)
	}
	if out, stderr, code := w.Run("logs", "--filter", "pairing", "--json"); code != 0 || !strings.Contains(out, `"by":"telegram:8","result":"owner"`) {
		t.Errorf("the audit has %q, %s", out, stderr)
	}
	w.Telegram.Say(9, 9, "/start "+code)
	if got := w.WaitSaid(9, 1)[0]; strings.Contains(got, "You own") {
		t.Error("the link worked twice")
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	empty := filepath.Join(t.TempDir(), "parley.toml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.File = empty // no model: the demo
	dir := t.TempDir()
	for _, name := range []string{"apple.txt", "pear.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, errs, code := w.Run("chat", "--workspace", dir, "-m", "list the files"); code != 0 || !strings.Contains(out, "apple.txt") || !strings.Contains(out, "pear.txt") {
		t.Errorf("list: %d %q %q", code, out, errs)
	}
	if out, errs, code := w.Run("chat", "-m", "write hello to notes.txt"); code != 0 {
		t.Errorf("write: %d %q %q", code, out, errs)
	}
	if out, errs, code := w.Run("chat", "-m", "read notes.txt"); code != 0 || !strings.Contains(out, "hello") {
		t.Errorf("read: %d %q %q", code, out, errs)
	}
	keyed := w.Command("chat", "-m", "read notes.txt")
	keyed.Env = append(keyed.Env, "ANTHROPIC_API_KEY=k")
	if out, err := keyed.CombinedOutput(); err != nil || !strings.Contains(string(out), "ANTHROPIC_API_KEY is set, but nothing reads it yet: parley onboard sets up Anthropic.") {
		t.Errorf("with a key that nothing reads: %q %v", out, err)
	}
	cmd := w.Command("chat")
	cmd.Stdin = strings.NewReader("read notes.txt\n")
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "hello") {
		t.Errorf("piped: %q %v", out, err)
	}
	if _, errs, code := w.Run("chat", "--workspace", filepath.Join(dir, "nosuch"), "-m", "x"); code != parleytest.ExitUsage || !strings.Contains(errs, "nosuch") {
		t.Errorf("a workspace that is none: %d %q", code, errs)
	}
}

func TestChatOverHTTP(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.ToolsModel, "")
	if out, errs, code := w.Run("chat", "-m", "go"); code != 0 || !strings.Contains(out, "one three") {
		t.Errorf("chat: %d %q %q", code, out, errs)
	}
}
