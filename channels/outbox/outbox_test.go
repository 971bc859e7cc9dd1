package outbox_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/outbox"
	"parley/channels/sqlbook"
)

var (
	c1  = bus.Address{Channel: "slack", Chat: "C1"}
	c2  = bus.Address{Channel: "slack", Chat: "C2", Thread: "5"}
	tg  = bus.Address{Channel: "telegram", Chat: "-100"}
	now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
)

type outboxTest struct {
	*outbox.Outbox
	t    *testing.T
	bus  *sqlitebus.Bus
	book *sqlbook.Book
	now  time.Time
}

func newOutboxTest(t *testing.T, cap int) *outboxTest {
	t.Helper()
	return newOutboxTestWithCaps(t, bus.Caps{Outbound: cap})
}

func newOutboxTestWithCaps(t *testing.T, caps bus.Caps) *outboxTest {
	t.Helper()
	b, book := openShared(t, t.TempDir(), caps)
	x := &outboxTest{t: t, bus: b, book: book, now: now}
	x.Outbox = &outbox.Outbox{
		Bus: b, Book: x.book, DeadLetters: b,
		Channels: func() []string { return []string{"slack", "telegram"} },
		Targets: func() map[string][]bus.Address {
			return map[string][]bus.Address{"oncall": {c1, tg, c1}, "ci": {c2}, "fallback": {tg}}
		},
		Now: func() time.Time { return x.now },
	}
	return x
}

// takeMail removes the messages that wait for a channel from the bus, and returns them by address.
func (x *outboxTest) takeMail(channel string) map[string][]bus.Outbound {
	x.t.Helper()
	got := map[string][]bus.Outbound{}
	for _, m := range bustest.Take(x.t, x.bus, bus.OutboundTopic(channel)) {
		out, err := bus.DecodeOutbound(m.Body)
		if err != nil {
			x.t.Fatal(err)
		}
		if m.ID != out.ID {
			x.t.Errorf("message %s carries %s", m.ID, out.ID)
		}
		got[m.Key] = append(got[m.Key], out)
	}
	return got
}

func (x *outboxTest) claim(channel string) bus.Lease {
	x.t.Helper()
	l, err := x.bus.Claim(x.t.Context(), bus.OutboundTopic(channel))
	if err != nil {
		x.t.Fatal(err)
	}
	return l
}

func (x *outboxTest) accept(r outbox.Request) outbox.Status {
	x.t.Helper()
	s, err := x.Accept(x.t.Context(), r)
	if err != nil {
		x.t.Fatal(err)
	}
	return s
}

// onlyDestination returns the state of a submission's only destination.
func (x *outboxTest) onlyDestination(id string) outbox.Destination {
	x.t.Helper()
	s, err := x.State(x.t.Context(), id)
	if err != nil {
		x.t.Fatal(err)
	}
	if len(s.Destinations) != 1 {
		x.t.Fatalf("%d destinations", len(s.Destinations))
	}
	return s.Destinations[0]
}

// recordSent writes into the book what a Dispatcher would.
func (x *outboxTest) recordSent(id string, to bus.Address, parts ...channels.SentPart) {
	x.t.Helper()
	if _, _, err := x.book.Begin(x.t.Context(), channels.Send{ID: id, To: to, Parts: make([]channels.SentPart, len(parts))}); err != nil {
		x.t.Fatal(err)
	}
	for i, p := range parts {
		if err := x.book.Mark(x.t.Context(), id, i, p); err != nil {
			x.t.Fatal(err)
		}
	}
}

func TestAccept(t *testing.T) {
	x := newOutboxTest(t, 10)
	s := x.accept(outbox.Request{
		Origin: "ci", To: []string{"oncall", "slack:C1", "ci"}, Text: "**hi**", Subject: "build 7",
		Expires: now.Add(time.Hour), File: &bus.File{Name: "log.txt", Data: []byte("x")},
	})
	var got []string
	for _, d := range s.Destinations {
		got = append(got, d.Address+" "+d.State)
	}
	if want := "slack:C1 queued,telegram:-100 queued,slack:C2/5 queued"; strings.Join(got, ",") != want {
		t.Errorf("destinations %s, want %s", got, want)
	}
	slack, telegram := x.takeMail("slack"), x.takeMail("telegram")
	if len(slack[c1.String()]) != 1 || len(slack[c2.String()]) != 1 || len(telegram[tg.String()]) != 1 {
		t.Fatalf("published %v and %v", slack, telegram)
	}
	out := slack[c1.String()][0]
	if out.ID != s.ID+"/0" || out.To != c1 || out.Text != "**hi**" || out.Origin != "ci" || out.Subject != "build 7" ||
		!out.Expires.Equal(now.Add(time.Hour)) || !out.At.Equal(now) || string(out.File.Data) != "x" {
		t.Errorf("published %+v", out)
	}
	if len(out.Fallback) != 1 || out.Fallback[0] != tg {
		t.Errorf("fallback of slack's is %v", out.Fallback)
	}
	if f := telegram[tg.String()][0].Fallback; len(f) != 0 {
		t.Errorf("what goes to the fallback falls back to %v", f)
	}
}

func TestARepeatedKeyReturnsTheSameSubmission(t *testing.T) {
	x := newOutboxTest(t, 10)
	r := outbox.Request{Origin: "ci", To: []string{"oncall"}, Text: "hi", Key: "k", Digest: "d"}
	first := x.accept(r)
	if again := x.accept(r); again.ID != first.ID {
		t.Errorf("two posts, %s and %s", first.ID, again.ID)
	}
	other := r
	other.Digest = "e"
	if _, err := x.Accept(t.Context(), other); !errors.Is(err, channels.ErrKeyReused) {
		t.Errorf("another body gave %v", err)
	}
	r.Origin = "cd"
	if mine := x.accept(r); mine.ID == first.ID {
		t.Error("two origins share a key")
	}
	if got := x.takeMail("slack")[c1.String()]; len(got) != 2 {
		t.Errorf("%d messages, want one for each origin", len(got))
	}
}

// If a process dies after the record and before the publication, the same request completes the submission.
func TestAcceptContinuesAfterACrash(t *testing.T) {
	x := newOutboxTest(t, 10)
	r := outbox.Request{Origin: "ci", To: []string{"oncall"}, Text: "hi", Key: "k", Digest: "d"}
	left, err := x.Record(t.Context(), r, []bus.Address{c1, tg})
	if err != nil {
		t.Fatal(err)
	}
	if s := x.accept(r); s.ID != left.ID {
		t.Errorf("post %s, want %s", s.ID, left.ID)
	}
	if n, m := len(x.takeMail("slack")[c1.String()]), len(x.takeMail("telegram")[tg.String()]); n != 1 || m != 1 {
		t.Errorf("%d and %d messages", n, m)
	}
}

func TestFullMailboxes(t *testing.T) {
	x := newOutboxTest(t, 1)
	x.accept(outbox.Request{To: []string{"slack:C1"}, Text: "first"})
	r := outbox.Request{Origin: "ci", To: []string{"oncall"}, Text: "second", Key: "k", Digest: "d"}
	_, err := x.Accept(t.Context(), r)
	full, ok := errors.AsType[*outbox.FullError](err)
	if !ok || !errors.Is(err, bus.ErrFull) || len(full.Full) != 1 || full.Full[0] != c1 {
		t.Fatalf("a full mailbox gave %v", err)
	}
	x.accept(outbox.Request{To: []string{"slack:C1"}, Text: "urgent", Urgent: true})
	x.takeMail("slack")
	if s := x.accept(r); s.ID != full.ID {
		t.Errorf("the retry is another post")
	}
	if n, m := len(x.takeMail("slack")[c1.String()]), len(x.takeMail("telegram")[tg.String()]); n != 1 || m != 1 {
		t.Errorf("%d and %d messages after the retry", n, m)
	}
}

// Urgent messages may exceed the cap, but those of a program only up to a limit.
func TestUrgentMessagesAreLimited(t *testing.T) {
	x := newOutboxTest(t, 1)
	urgent := outbox.Request{To: []string{"slack:C1"}, Text: "urgent", Urgent: true}
	for range 1 + bus.UrgentBeyond {
		x.accept(urgent)
	}
	if _, err := x.Accept(t.Context(), urgent); !errors.Is(err, bus.ErrFull) {
		t.Errorf("%d urgent messages beyond the cap gave %v", bus.UrgentBeyond+1, err)
	}
	urgent.Unlimited = true
	x.accept(urgent)
}

// A file is copied for each destination, so the size of all copies is limited, and so is what waits for one
// address.
func TestLargeFilesAreLimited(t *testing.T) {
	x := newOutboxTestWithCaps(t, bus.Caps{Bytes: 16 << 20})
	file := &bus.File{Name: "core", Data: make([]byte, 10<<20)}
	_, err := x.Accept(t.Context(), outbox.Request{To: manyAddresses(11), File: file})
	if invalid, ok := errors.AsType[*outbox.InvalidError](err); !ok || invalid.Code != "too_many_copies" || !strings.Contains(invalid.Message, "10 destinations") {
		t.Errorf("110 MB gave %v", err)
	}
	if len(x.takeMail("slack")) > 0 {
		t.Error("what was refused left something behind")
	}
	x.accept(outbox.Request{To: manyAddresses(2), File: file})
	_, err = x.Accept(t.Context(), outbox.Request{To: manyAddresses(2), File: file})
	full, ok := errors.AsType[*outbox.FullError](err)
	if !ok || !errors.Is(err, bus.ErrTooMuch) || len(full.Full) != 2 || !strings.HasPrefix(full.Error(), "too much is already waiting for slack:C0") {
		t.Errorf("twice 13 MB for one address gave %v", err)
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	x := newOutboxTest(t, 10)
	for _, c := range []struct {
		to   []string
		text string
		want string
	}{
		{[]string{"oncal"}, "x", `there's no target "oncal"; did you mean "oncall"?`},
		{[]string{"payments"}, "x", `there's no target "payments"; known names: ci, fallback, oncall`},
		{[]string{"slakc:C1"}, "x", `there's no channel "slakc"; did you mean "slack"?`},
		{[]string{"ci", "web:x"}, "x", `there's no channel "web"; known names: slack, telegram`},
		{[]string{"slack:"}, "x", `"slack:" isn't an address`},
		{[]string{"slack:" + strings.Repeat("C", 300)}, "x", "isn't an address"},
		{[]string{"slack:C1\r\nX"}, "x", `without control characters`},
		{[]string{"slack:C1\u202e"}, "x", "isn't an address"},
		{[]string{"slack:\x1b]0;C1\a"}, "x", "isn't an address"},
		{manyAddresses(101), "x", `"to" has more than 100 addresses`},
		{nil, "x", "there's no destination"},
		{[]string{"ci"}, " \n", "there's nothing to send"},
		{[]string{"ci"}, "\u200b\u3164&#8203;", "there's nothing to send"},
	} {
		_, err := x.Accept(t.Context(), outbox.Request{To: c.to, Text: c.text})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.to, err, c.want)
		}
	}
	for _, name := range []string{
		"../passwd", `a\b`, "", ".", "..", "a\r\nContent-Type: text/html", `x"; filename="y`, "a\x00", "a\x1b[2J", "a\u202egpj.exe", "\xff", "\u200b",
		strings.Repeat("n", 256),
	} {
		_, err := x.Accept(t.Context(), outbox.Request{To: []string{"ci"}, File: &bus.File{Name: name}})
		if invalid, ok := errors.AsType[*outbox.InvalidError](err); !ok || invalid.Code != "bad_file_name" {
			t.Errorf("a file called %q gave %v", name, err)
		}
	}
	if len(x.takeMail("slack")) > 0 {
		t.Error("what was refused left something behind")
	}
}

// manyAddresses returns n addresses.
func manyAddresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("slack:C%d", i)
	}
	return all
}

func TestAHundredDestinationsAreAccepted(t *testing.T) {
	x := newOutboxTest(t, 10)
	if s := x.accept(outbox.Request{To: manyAddresses(outbox.MaxDestinations), Text: "x"}); len(s.Destinations) != outbox.MaxDestinations {
		t.Errorf("%d destinations", len(s.Destinations))
	}
}

// A request that has already expired is recorded as failed, and nobody gets it.
func TestExpiredRequestsAreNotPublished(t *testing.T) {
	x := newOutboxTest(t, 10)
	r := outbox.Request{Origin: "ci", To: []string{"oncall"}, Text: "x", Expires: now.Add(-time.Hour), Key: "k", Digest: "d"}
	s := x.accept(r)
	for _, d := range s.Destinations {
		if d.State != channels.Failed || d.Error == nil || d.Error.Code != "expired" {
			t.Errorf("accepted as %+v", d)
		}
	}
	if d, err := x.State(t.Context(), s.ID); err != nil || len(d.Destinations) != 2 || d.Destinations[0].State != channels.Failed {
		t.Errorf("%+v, %v", d, err)
	}
	if again := x.accept(r); again.ID != s.ID {
		t.Errorf("the same request again is %s, want %s", again.ID, s.ID)
	}
	if len(x.takeMail("slack"))+len(x.takeMail("telegram")) > 0 {
		t.Error("it was published all the same")
	}
}

func TestNothingIsPublishedWithoutARecord(t *testing.T) {
	b, book := openApart(t, t.TempDir(), bus.Caps{})
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := outboxOf(b, book).Accept(t.Context(), outbox.Request{To: []string{"slack:C1"}, Text: "x"}); err == nil {
		t.Error("a broken book accepted it")
	}
	if waiting(t, b) > 0 {
		t.Error("something was published without a record")
	}
}

func TestState(t *testing.T) {
	for _, c := range []struct {
		name  string
		parts []channels.SentPart
		state string
		code  string
	}{
		{"not begun", nil, "queued", ""},
		{"half sent", []channels.SentPart{{State: channels.Sent}, {State: channels.Queued}}, "queued", ""},
		{"sent", []channels.SentPart{{State: channels.Sent, PlatformID: "1"}}, "sent", ""},
		{"refused", []channels.SentPart{{State: channels.Failed, Code: "chat_not_found"}}, "failed", "chat_not_found"},
		{"unknown", []channels.SentPart{{State: channels.OutcomeUnknown}}, "unknown", "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newOutboxTest(t, 10)
			s := x.accept(outbox.Request{Origin: "ci", To: []string{"ci"}, Text: "x"})
			if c.parts != nil {
				x.recordSent(s.ID+"/0", c2, c.parts...)
			}
			d := x.onlyDestination(s.ID)
			if d.State != c.state || d.Address != "slack:C2/5" || d.At.IsZero() {
				t.Errorf("%+v, want %s", d, c.state)
			}
			if (d.Error == nil) != (c.code == "") || d.Error != nil && (d.Error.Code != c.code || d.Error.Message == "") {
				t.Errorf("error %+v, want %q", d.Error, c.code)
			}
		})
	}
	x := newOutboxTest(t, 10)
	if _, err := x.State(t.Context(), "m_none"); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("an unknown id gave %v", err)
	}
}

func TestStateOfAnExpiredRequest(t *testing.T) {
	x := newOutboxTest(t, 10)
	s := x.accept(outbox.Request{To: []string{"ci"}, Text: "x", Expires: now.Add(time.Minute)})
	x.now = now.Add(time.Minute - 1)
	if d := x.onlyDestination(s.ID); d.State != "queued" {
		t.Errorf("too early: %+v", d)
	}
	x.now = now.Add(time.Minute)
	if d := x.onlyDestination(s.ID); d.State != "failed" || d.Error.Code != "expired" {
		t.Errorf("too late: %+v", d)
	}
	x.recordSent(s.ID+"/0", c2, channels.SentPart{State: channels.Sent, PlatformID: "1"})
	if d := x.onlyDestination(s.ID); d.State != "sent" {
		t.Errorf("what was sent in time is %+v", d)
	}
}

func TestStateAtTheFallback(t *testing.T) {
	x := newOutboxTest(t, 10)
	s := x.accept(outbox.Request{To: []string{"ci"}, Text: "x"})
	failed := channels.SentPart{State: channels.Failed, Code: "gone"}
	x.recordSent(s.ID+"/0", c2, failed)
	if d := x.onlyDestination(s.ID); d.Fallback != nil {
		t.Errorf("a fallback that was not used: %+v", d.Fallback)
	}
	x.recordSent(bus.FallbackID(s.ID+"/0", 0), tg, channels.SentPart{State: channels.Sent, PlatformID: "1"})
	if d := x.onlyDestination(s.ID); d.State != "failed" || d.Fallback == nil || *d.Fallback != (outbox.Fallback{Address: "telegram:-100", State: "sent"}) {
		t.Errorf("%+v %+v", d, d.Fallback)
	}
}

func TestStateOfAReplay(t *testing.T) {
	x := newOutboxTest(t, 10)
	s := x.accept(outbox.Request{To: []string{"ci"}, Text: "x"})
	x.recordSent(s.ID+"/0", c2, channels.SentPart{State: channels.Failed, Code: "gone"})
	l := x.claim("slack")
	ms, err := l.Mail(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Settle(t.Context(), bus.End{Dead: ms[0].Seq, Reason: "gone"}); err != nil {
		t.Fatal(err)
	}
	id, err := x.bus.Replay(t.Context(), bus.OutboundTopic("slack"), ms[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := x.onlyDestination(s.ID); d.State != "failed" {
		t.Errorf("before the replay is sent: %+v", d)
	}
	x.recordSent(id, c2, channels.SentPart{State: channels.Sent, PlatformID: "1"})
	if d := x.onlyDestination(s.ID); d.State != "sent" || d.Error != nil {
		t.Errorf("after the replay: %+v", d)
	}
}

// A message that became a dead letter before it was begun is found among the dead letters.
func TestStateOfAnUnreadDeadLetter(t *testing.T) {
	x := newOutboxTest(t, 10)
	s := x.accept(outbox.Request{To: []string{"ci"}, Text: "x"})
	l := x.claim("slack")
	ms, err := l.Mail(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Settle(t.Context(), bus.End{Dead: ms[0].Seq, Reason: "panicked"}); err != nil {
		t.Fatal(err)
	}
	x.now = now.Add(time.Hour)
	if d := x.onlyDestination(s.ID); d.State != "failed" || d.Error.Code != "panicked" {
		t.Errorf("%+v", d)
	}
}

func BenchmarkAccept(b *testing.B) {
	b.Run("together", func(b *testing.B) { benchmarkAccept(b, openShared) })
	b.Run("apart", func(b *testing.B) { benchmarkAccept(b, openApart) })
}

func benchmarkAccept(b *testing.B, open openFunc) {
	x, book := open(b, b.TempDir(), bus.Caps{})
	o := &outbox.Outbox{
		Bus: x, Book: book, Channels: func() []string { return []string{"slack"} },
		Targets: func() map[string][]bus.Address { return nil },
	}
	to := make([]string, 100)
	for i := range to {
		to[i] = fmt.Sprintf("slack:C%d", i)
	}
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := o.Accept(b.Context(), outbox.Request{To: to[i%100 : i%100+1], Text: "hello"}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
