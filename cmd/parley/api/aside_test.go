package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/blocks"
	"parley/bus"
	"parley/channels/dispatch"
	"parley/channels/web"
	"parley/cmd/parley/api"
	"parley/sessions"
	"parley/tools/redact"
)

// aside is what a snapshot contains besides turns.
type aside struct {
	Messages []struct{ Call, Kind, Turn, Command, Text, After string }
	Asks     []api.Ask
}

// asideIn opens a stream of a session and returns what its snapshot contains besides turns. It fails the test if the
// snapshot shows a secret.
func (x *rig) asideIn(key, token string) (said aside) {
	x.t.Helper()
	f := x.watch(key, token, "")
	defer f.close()
	data := f.must().data
	if err := json.Unmarshal([]byte(data), &said); err != nil || strings.Contains(data, secret) || strings.Contains(data, "CSECRET") {
		x.t.Fatalf("%v: %s", err, data)
	}
	return said
}

// called returns the entries of a tool call: the call itself, and the end of the answer in which the model asked for
// it.
func called(t *testing.T, turn, call, tool, args string) []sessions.Entry {
	use := entry(t, turn, sessions.KindToolUse, sessions.ToolUse{Name: tool, Args: json.RawMessage(args)})
	use.Call = call
	return []sessions.Entry{use, entry(t, turn, sessions.KindUsage, sessions.Usage{Model: "m"})}
}

// hiding returns a rig that removes the secret from everything it shows. Its API reads a session of Ann's.
func hiding(t *testing.T) *rig {
	hidden, err := redact.New([]string{secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ownRig(t, func(x *rig) { x.cfg.Redact = func() blocks.Redactor { return hidden } })
}

// A snapshot shows how closed requests have ended: decided by somebody, expired, or no longer needed. Everybody who
// may read the session sees this, but no secrets, no places where approvers were asked, and no more of a call than
// watchers see elsewhere. Open requests are only listed.
func TestASnapshotHasRequestsThatHaveEnded(t *testing.T) {
	x := hiding(t)
	const key = "main:web:ann"
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	places := json.RawMessage(`[{"channel":"slack","chat":"CSECRET"}]`)
	ask := func(id, call, kind string) sessions.Ask {
		return sessions.Ask{ID: id, Call: call, Kind: kind, Expires: expires, Places: places}
	}
	approval, question, late := ask("ask1", "k1", bus.AskApproval), ask("ask2", "k2", bus.AskQuestion), ask("ask3", "k3", bus.AskApproval)
	approval.Shown, approval.ShownOf, approval.Reason = "say "+secret+"\u202e", []string{"command"}, "it says "+secret
	question.Question, question.Choices = "Which "+secret+"?", []string{"one", "two"}
	late.Args = json.RawMessage(`{"text":"` + strings.Repeat("x", 40<<10) + `"}`)
	end := func(turn string, e sessions.AskEnded, by string) sessions.Entry {
		ended := entry(t, turn, sessions.KindAskEnded, e)
		ended.Cause, ended.Person = e.Ask, by
		return ended
	}
	started := begun(t, "asking")
	started[0].Person = "web:ann"
	all := append(started, called(t, "asking", "k1", "sh", `{"command":"say `+secret+`","dir":"a"}`)...)
	all = append(all, called(t, "asking", "k2", "ask_user", `{}`)...)
	all = append(all, called(t, "asking", "k3", "write", `{"text":"short"}`)...)
	all = append(all,
		entry(t, "asking", sessions.KindTurnParked, sessions.TurnParked{Asks: []sessions.Ask{approval, question, late, ask("ask4", "k1", bus.AskApproval), ask("task", "k2", sessions.AskTask)}}),
		end("asking", sessions.AskEnded{Ask: "ask1", State: bus.AskAnswered, Answer: bus.ApproveSession, Name: "Boss"}, "telegram:7"),
		end("asking", sessions.AskEnded{Ask: "ask2", State: bus.AskAnswered, Answer: "two, " + secret}, "web:ann"),
		end("asking", sessions.AskEnded{Ask: "ask3", State: bus.AskExpired}, ""))
	x.write(key, all...)
	said := x.asideIn(key, ownToken)
	if len(said.Asks) != 3 {
		t.Fatalf("while one is open, it has %+v", said.Asks)
	}
	x.write(key, entry(t, "asking", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCancelled}))
	for _, token := range []string{ownToken, readToken, ownerToken} {
		var got []string
		for _, a := range x.asideIn(key, token).Asks {
			if a.Session != key || a.Turn != "asking" || a.Person != "web:ann" || !a.Expires.Equal(expires) || a.At.IsZero() || a.To != nil {
				t.Errorf("%+v", a)
			}
			if a.ID == "ask3" && (len(a.Arguments) > 20<<10 || len(a.Arguments) < 10<<10) {
				t.Errorf("it has %d bytes of a long call", len(a.Arguments))
			}
			shown := ""
			if a.ID == "ask1" {
				shown = fmt.Sprint(a.Shown)
			}
			got = append(got, fmt.Sprintf("%s %s %s: %s %q by %q %s%s%v", a.ID, a.Kind, a.Tool, a.State, a.Answer, a.By, shown, a.Reason+a.Question, a.Choices))
		}
		want := `ask1 approval sh: answered "session" by "telegram:7" [{ say [redacted]\u202e} {dir a}]it says [redacted][]` + "\n" +
			`ask2 question : answered "two, [redacted]" by "web:ann" Which [redacted]?[one two]` + "\n" +
			`ask3 approval write: expired "" by "" []` + "\n" +
			`ask4 approval sh: withdrawn "" by "" []`
		if strings.Join(got, "\n") != want {
			t.Errorf("%s is told\n%s\nwant\n%s", token, strings.Join(got, "\n"), want)
		}
	}
	x.writeLong(key, 40)
	if said := x.asideIn(key, ownToken); len(said.Asks) != 0 {
		t.Errorf("with its turn it does not leave: %+v", said.Asks)
	}
}

// A snapshot contains the replies to commands, with the ids of their events, in order, and without secrets. It omits
// commands without a reply, and replies that a platform has shown by itself.
func TestASnapshotHasTheRepliesToCommands(t *testing.T) {
	x := hiding(t)
	reply := func(id, name, text string) sessions.Entry {
		e := entry(t, id, sessions.KindCommand, sessions.Command{Name: name, Route: json.RawMessage("{}"), Reply: sessions.Reply{ID: bus.ReplyID(id), Text: text}})
		e.Cause, e.Person = id, "web:ann"
		return e
	}
	entries := append([]sessions.Entry{reply("m_1", "help", "I know "+secret)}, begun(t, "asking")...)
	entries = append(entries, reply("m_2", "status", "Nothing runs."), reply("m_3", "approve", ""))
	for key, want := range map[string]string{
		"main:web:ann":     "[{m_1#reply/0 command m_1 help I know [redacted] } {m_2#reply/0 command m_2 status Nothing runs. asking}]",
		"main:console:x":   "[{m_1#reply/0 command m_1 help I know [redacted] } {m_2#reply/0 command m_2 status Nothing runs. asking}]",
		"main:telegram:7":  "[]",
		"main:telegram:-9": "[]",
	} {
		x.write(key, entries...)
		if got := fmt.Sprint(x.asideIn(key, ownerToken).Messages); got != want {
			t.Errorf("%s: the snapshot has %s, want %s", key, got, want)
		}
	}
	if r := x.get(sessionPath("main:console:x", "/events"), ownToken); r.StatusCode != 403 {
		t.Errorf("another's session: %d", r.StatusCode)
	}
}

// A snapshot contains what a failed or stopped turn told its person, in order, without secrets, and with the id of
// the event. For a turn that ended well, the blocks already contain the answer.
func TestASnapshotHasWhatFailedTurnsSaid(t *testing.T) {
	x := hiding(t)
	const key = "main:web:ann"
	end := func(turn, state, text string) []sessions.Entry {
		return append(begun(t, turn), entry(t, turn, sessions.KindTurnDone, sessions.TurnDone{State: state, Outbound: []sessions.Reply{{ID: bus.ReplyID(turn), Text: text}}}))
	}
	x.write(key, end("f1", sessions.TurnFailed, "I can't say "+secret)...)
	x.write(key, end("f2", sessions.TurnCompleted, "the answer")...)
	x.write(key, end("f3", sessions.TurnCancelled, "Stopped.")...)
	x.write(key, end("f4", sessions.TurnFailed, "")...) // its text was erased
	want := "[{f1#reply/0 reply f1  I can't say [redacted] f1} {f3#reply/0 reply f3  Stopped. f3}]"
	if got := fmt.Sprint(x.asideIn(key, ownToken).Messages); got != want {
		t.Errorf("the snapshot has %s, want %s", got, want)
	}
	x.writeLong(key, 40)
	if got := fmt.Sprint(x.asideIn(key, ownToken).Messages); got != "[]" {
		t.Errorf("it does not leave with its turn: %s", got)
	}
}

// The reply to a command in a snapshot equals the reply that watchers got live.
func TestRepliesAreTheSameLiveAndLater(t *testing.T) {
	x := newRig(t)
	x.work(brief{})
	d := &dispatch.Dispatcher{Name: web.Name, Channel: web.New(x.bus, "main"), Bus: x.bus, Book: x.book, Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := d.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()
	live := x.watch("main:web:chat", chatToken, "")
	live.must()
	id := into[accepted](t, x.post(chatToken, `{"to": "agent", "text": "/help"}`)).ID
	var told bus.Event
	for told.Type = ""; told.Delta == ""; {
		if e := live.must(); e.kind == bus.Spoken {
			if err := json.Unmarshal([]byte(e.data), &told); err != nil {
				t.Fatal(err)
			}
		}
	}
	said := x.asideIn("main:web:chat", chatToken).Messages
	if len(said) != 1 || said[0].Call != told.Call || said[0].Turn != told.Turn || told.Turn != id || said[0].Text != told.Delta || said[0].Command != "help" {
		t.Errorf("live it was told %+v, later %+v", told, said)
	}
}

// A snapshot contains what the agent has said in this conversation on behalf of people in another one, with their
// names and without secrets. What one of them has erased is gone.
func TestASnapshotHasWhatWasSaidOnBehalfOfOthers(t *testing.T) {
	x := hiding(t)
	told := func(id string, quotes ...sessions.Quote) sessions.Entry {
		e := entry(t, bus.ToldID(id), sessions.KindNotice, sessions.Notice{Code: sessions.NoticeTold, Text: "You have told this chat something.", Quotes: quotes})
		e.Cause = bus.ToldID(id)
		return e
	}
	entries := append([]sessions.Entry{told("m_1#c1", sessions.Quote{Kind: bus.Told, Person: "telegram:2", Name: "Bob", Text: "**lunch**, " + secret})}, begun(t, "asking")...)
	entries = append(entries, told("m_1#c2", sessions.Quote{Kind: bus.Told, Person: "telegram:2", Text: "at noon"}), told("m_1#c3"),
		entry(t, "n", sessions.KindNotice, sessions.Notice{Code: "delivery", Text: "not told"}))
	for _, key := range []string{"main:web:ann", "main:telegram:3"} {
		x.write(key, entries...)
		want := "[{m_1#c1 told   **lunch**, [redacted] } {m_1#c2 told   at noon asking}]"
		if got := fmt.Sprint(x.asideIn(key, ownerToken).Messages); got != want {
			t.Errorf("%s: the snapshot has %s, want %s", key, got, want)
		}
		f := x.watch(key, ownerToken, "")
		if data := f.must().data; !strings.Contains(data, `"name":"Bob (telegram:2)"`) || !strings.Contains(data, `"name":"telegram:2"`) {
			t.Errorf("%s: who had it said: %s", key, data)
		}
		f.close()
	}
}

// A snapshot contains what the agent has sent to its own conversation with the message tool, with the id of the
// event, because watchers see it nowhere else. It omits what the agent sent elsewhere or couldn't send.
func TestASnapshotHasWhatTheAgentSentHere(t *testing.T) {
	x := hiding(t)
	result := func(turn, call, code string) sessions.Entry {
		e := entry(t, turn, sessions.KindToolResult, sessions.ToolResult{Content: json.RawMessage(`{"status":"sent"}`), Code: code})
		e.Call = call
		return e
	}
	here := map[string]string{"main:web:ann": "web:ann", "main:web:ann:side": "web:ann/side", "main:console:x": "console:x", "main:telegram:3": "telegram:3"}
	for key, at := range here {
		channel, chat, _ := strings.Cut(at, ":")
		x.write(key, begun(t, "asking")...)
		for call, args := range map[string]string{
			"k1": fmt.Sprintf(`{"channel":%q,"chat_id":%q,"content":"half of %s"}`, channel, chat, secret),
			"k2": fmt.Sprintf(`{"channel":%q,"content":"and the rest"}`, at),
			"k3": `{"channel":"telegram","chat_id":"4","content":"elsewhere"}`,
			"k4": fmt.Sprintf(`{"channel":%q,"content":"failed"}`, at),
			"k5": fmt.Sprintf(`{"channel":%q,"content":" ","files":["a.png"]}`, at),
		} {
			code := ""
			if call == "k4" {
				code = "unavailable"
			}
			x.write(key, append(called(t, "asking", call, "message", args), result("asking", call, code))...)
		}
		got := map[string]bool{}
		for _, m := range x.asideIn(key, ownerToken).Messages {
			got[fmt.Sprint(m)] = true
		}
		want := 2
		if strings.HasPrefix(key, "main:telegram") {
			want = 0
		}
		if len(got) != want || want > 0 && (!got["{asking#k1/0 sent   half of [redacted] asking}"] || !got["{asking#k2/0 sent   and the rest asking}"]) {
			t.Errorf("%s: the snapshot has %v", key, got)
		}
	}
}
