package why_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/channels/why"
	"parley/sessions"
	"parley/sessions/sqlstore"
)

// A rig is a Why over a real bus, store and book.
type rig struct {
	*testing.T
	*why.Why
	bus   *sqlitebus.Bus
	store *sqlstore.Store
	book  *sqlbook.Book
}

func newRig(t *testing.T) *rig {
	x, dir := &rig{T: t}, t.TempDir()
	var err error
	x.bus, err = sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db")})
	x.must(err)
	t.Cleanup(func() { x.bus.Close() })
	x.store, err = sqlstore.Open(t.Context(), filepath.Join(dir, "store.db"))
	x.must(err)
	t.Cleanup(func() { x.store.Close() })
	x.book, err = sqlbook.Open(t.Context(), filepath.Join(dir, "book.db"))
	x.must(err)
	t.Cleanup(func() { x.book.Close() })
	x.Why = why.New(why.Config{
		Sessions: x.store, Book: x.book, Mail: x.bus, Refusals: x.store.AuditRecords,
		Agents: func() []string { return []string{"main", "ops"} }, KeptFor: func() time.Duration { return 90 * 24 * time.Hour },
	})
	return x
}

func (x *rig) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// newEntry returns an entry; kind is the name of its kind, and data its fields.
func newEntry(turn string, kind sessions.Kind, cause string, data any) sessions.Entry {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err) // the data of these tests can be encoded
	}
	e := sessions.Entry{Turn: turn, Kind: kind, Cause: cause, Data: raw}
	if cause != "" {
		e.Person = "discord:U1"
	}
	return e
}

// write appends entries to the log of a session.
func (x *rig) write(key string, entries ...sessions.Entry) {
	x.Helper()
	l, err := x.store.Open(x.Context(), key, 1)
	x.must(err)
	x.must(l.Append(x.Context(), l.Next(), entries...))
}

// storyText returns the report on one message, and checks its outcome.
func (x *rig) storyText(id, outcome string) string {
	x.Helper()
	told, err := x.Tell(x.Context(), id)
	x.must(err)
	if len(told.Messages) != 1 || told.Messages[0].Outcome != outcome {
		x.Errorf("of %s it tells %+v, want %s", id, told, outcome)
		return ""
	}
	var all []string
	for _, s := range told.Messages[0].Steps {
		all = append(all, s.Text)
	}
	text := strings.Join(all, "\n")
	if strings.Contains(text+told.Messages[0].Says, "xyzzyplugh") {
		x.Errorf("it tells what was said: %s", text)
	}
	return text
}

func (x *rig) wantWords(text string, words ...string) {
	x.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			x.Errorf("there is no %q in\n%s", w, text)
		}
	}
}

// A message in a Discord thread, whose id contains only the thread, is found with an agent other than the main
// one. The report says that a message joined a turn, and that a turn is running.
func TestAMessageThatJoinsATurn(t *testing.T) {
	x := newRig(t)
	at := bus.Address{Channel: "discord", Chat: "C1", Thread: "T1"}
	key := "ops:discord:C1:T1"
	x.must(x.book.RecordChat(t.Context(), channels.Chat{Address: at, Session: key, Group: true, Seen: time.Now()}))
	const first, second = "discord:B:T1:1", "discord:B:T1:2"
	x.write(key, newEntry(first, sessions.KindTurnStarted, "", sessions.TurnStarted{Agent: "ops"}), newEntry(first, sessions.KindUser, first, sessions.User{Text: "xyzzyplugh"}),
		newEntry(first, sessions.KindUser, second, sessions.User{Text: "xyzzyplugh"}), newEntry(first, sessions.KindResumed, "", nil))
	text := x.storyText(second, "running")
	x.wantWords(text, "it arrived from discord:U1, was accepted, and is in conversation "+key, "it joined the turn "+first, "another process continued it")
	x.wantWords(x.storyText(first, "running"), "it started the turn "+first+" of the agent ops")

	x.write(key, newEntry(first, sessions.KindTurnDone, "", sessions.TurnDone{State: "failed", Code: "timeout", Outbound: []sessions.Reply{{ID: first + "#reply", Text: "xyzzyplugh"}}}))
	x.wantWords(x.storyText(first, "sending"), "the turn failed: timeout", first+"#reply is on the bus")
	part := channels.SentPart{Text: "xyzzyplugh", State: channels.Sending}
	_, _, err := x.book.Begin(t.Context(), channels.Send{ID: first + "#reply", To: at, Session: key, Parts: []channels.SentPart{part}, At: time.Now()})
	x.must(err)
	part.State, part.PlatformID = channels.Sent, "99"
	x.must(x.book.Mark(t.Context(), first+"#reply", 0, part))
	x.wantWords(x.storyText(second, "failed"), "was sent to discord:C1/T1 as 99")
}

// A message that was given up before any session knew it is reported, and so is what became of its replay.
func TestAMessageThatWasGivenUp(t *testing.T) {
	x := newRig(t)
	const id, key = "telegram:4242:7:1", "main:telegram:7"
	x.must(x.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: id, Key: key, Body: []byte("xyzzyplugh")}))
	x.wantWords(x.storyText(id, "waiting"), "conversation "+key+" has messages that no worker has started on")
	lease, err := x.bus.Claim(t.Context(), bus.InboundTopic)
	x.must(err)
	mail, err := lease.Mail(t.Context(), 0)
	x.must(err)
	x.must(lease.Settle(t.Context(), bus.End{Dead: mail[0].Seq, Reason: "its log cannot be opened"}))
	x.wantWords(x.storyText(id, "given_up"), "Parley gave up on it after 1 attempt, so it's a dead letter in the topic inbound: its log cannot be opened")
	again, err := x.bus.Replay(t.Context(), bus.InboundTopic, id)
	x.must(err)
	x.write(key, newEntry(again, sessions.KindTurnStarted, "", sessions.TurnStarted{}), newEntry(again, sessions.KindUser, again, sessions.User{}),
		newEntry(again, sessions.KindTurnDone, "", sessions.TurnDone{State: "done"}))
	x.wantWords(x.storyText(id, "done"), "published it again as "+again, "the turn was finished")
}

// A dead letter is found by its id and in its session, however many others are newer.
func TestADeadLetterIsFoundAmongMany(t *testing.T) {
	x := newRig(t)
	const many, key = 2050, "main:telegram:7"
	var publishing sync.WaitGroup
	for n := range 50 {
		publishing.Go(func() {
			for i := range many / 50 {
				if err := x.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: fmt.Sprintf("telegram:4242:8:%d", 100*n+i), Key: "main:telegram:8", Body: []byte("xyzzyplugh")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	publishing.Wait()
	bury := func() {
		lease, err := x.bus.Claim(t.Context(), bus.InboundTopic)
		x.must(err)
		mail, err := lease.Mail(t.Context(), 0)
		x.must(err)
		x.must(lease.Settle(t.Context(), bus.End{Dead: mail[len(mail)-1].Seq, Reason: "its log cannot be opened"}))
	}
	bury()
	if others, err := x.bus.Depth(t.Context(), bus.InboundTopic); err != nil || others.Dead != many {
		t.Fatalf("%+v, %v", others, err)
	}
	x.write(key, newEntry("telegram:4242:7:1", sessions.KindTurnStarted, "", sessions.TurnStarted{}))
	x.must(x.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "telegram:4242:7:2", Key: key, Body: []byte("xyzzyplugh")}))
	bury()
	x.storyText("telegram:4242:7:2", "given_up")
	x.storyText("telegram:4242:8:4920", "given_up")
	x.storyText(key, "given_up")
}

// A program's submission is reported for each of its destinations.
func TestASubmissionIsReportedPerDestination(t *testing.T) {
	x := newRig(t)
	to := []bus.Address{{Channel: "slack", Chat: "C1"}, {Channel: "telegram", Chat: "-7"}}
	p, _, err := x.book.Accept(t.Context(), channels.Submission{ID: "m_1", Origin: "ci", Destinations: to, At: time.Now()})
	x.must(err)
	_, _, err = x.book.Begin(t.Context(), channels.Send{ID: "m_1/0", To: to[0], Parts: []channels.SentPart{{State: channels.Failed, Code: "channel_not_found"}}, At: time.Now()})
	x.must(err)
	text := x.storyText(p.ID, "undelivered")
	x.wantWords(text, "ci submitted it for slack:C1, telegram:-7", "m_1/0 was not sent to slack:C1: the platform says channel_not_found", "m_1/1 is on the bus")
	x.wantWords(x.storyText("m_1/1", "undelivered"), "ci submitted it")
}

// For a chat with many conversations and refusals, only the newest messages are reported.
func TestTheNewestMessagesOfAChat(t *testing.T) {
	x := newRig(t)
	for n := range 12 {
		id := fmt.Sprintf("slack:T:C1:%d", n)
		x.write(fmt.Sprintf("main:slack:C1:%d", n), newEntry(id, sessions.KindTurnStarted, "", sessions.TurnStarted{}), newEntry(id, sessions.KindUser, id, sessions.User{}),
			newEntry(id, sessions.KindTurnDone, "", sessions.TurnDone{State: "cancelled"}))
	}
	x.must(x.store.AuditNotes(t.Context(), []sessions.AuditRecord{{
		At: time.Now(), Kind: sessions.AuditRefusal, By: "slack:U9", Result: "stranger", Address: "slack:C1/99", Messages: []string{"slack:T:C1:98", "slack:T:C1:99"}, Count: 2,
	}}))
	told, err := x.Tell(t.Context(), "slack:C1")
	x.must(err)
	if told.About != "chat" || len(told.Messages) != 5 || told.Messages[0].Message != "slack:T:C1:99" || told.Messages[0].Outcome != "refused" ||
		told.Messages[1].Message != "slack:T:C1:11" || told.Messages[1].Outcome != "cancelled" {
		t.Errorf("it tells %+v", told)
	}
	if told, err = x.Tell(t.Context(), "slack:U9"); err != nil || told.About != "person" || len(told.Messages) != 1 || told.Messages[0].Outcome != "refused" {
		t.Errorf("of the stranger it tells %+v, %v", told, err)
	}
	if told, err = x.Tell(t.Context(), "discord:U1"); err != nil || told.About != "person" || len(told.Messages) != 5 || told.Messages[0].Message != "slack:T:C1:11" {
		t.Errorf("of who has said all of it it tells %+v, %v", told, err)
	}
	x.wantWords(x.storyText("slack:T:C1:98", "refused"), "from slack:U9 at slack:C1/99, and the rule stranger refused it", "in all, this rule has refused 2 messages there")
}

// The report says what a turn has waited for and how that ended, but not the answer to a question.
func TestWhatATurnWaitedFor(t *testing.T) {
	x := newRig(t)
	const id = "telegram:4242:7:1"
	of := func(e sessions.Entry, call string) sessions.Entry { e.Call = call; return e }
	parked := sessions.TurnParked{Asks: []sessions.Ask{
		{ID: "aaaaaaaaaa", Call: "c1", Kind: bus.AskApproval, Expires: time.Now()}, {ID: "bbbbbbbbbb", Call: "c2", Kind: bus.AskQuestion, Question: "xyzzyplugh", Expires: time.Now()},
	}}
	by := func(e sessions.Entry) sessions.Entry { e.Person = "telegram:1"; return e }
	x.write("main:telegram:7", newEntry(id, sessions.KindTurnStarted, "", sessions.TurnStarted{}), newEntry(id, sessions.KindUser, id, sessions.User{}),
		of(newEntry(id, sessions.KindToolUse, "", sessions.ToolUse{Name: "exec_shell", Args: []byte(`{"command":"xyzzyplugh"}`)}), "c1"),
		newEntry(id, sessions.KindTurnParked, "", parked))
	x.wantWords(x.storyText(id, "waiting_for_people"), "it's waiting for approval of exec_shell (aaaaaaaaaa, until ", ", an answer (bbbbbbbbbb, until ")
	x.write("main:telegram:7", by(newEntry(id, sessions.KindAskEnded, "", sessions.AskEnded{Ask: "aaaaaaaaaa", State: bus.AskAnswered, Answer: bus.Deny})),
		by(newEntry(id, sessions.KindAskEnded, "", sessions.AskEnded{Ask: "bbbbbbbbbb", State: bus.AskAnswered, Answer: "xyzzyplugh"})), newEntry(id, sessions.KindTurnUnparked, "", nil))
	x.wantWords(x.storyText(id, "running"), "the request aaaaaaaaaa was denied by telegram:1", "the request bbbbbbbbbb was answered by telegram:1")
}
