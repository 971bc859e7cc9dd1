// Package channelstest contains the conformance suites for every channel and every book, and a channel in memory
// for tests.
//
// RunChannel (channel.go) tests an adapter together with a fake of its platform's API. Its checks are in
// channel_receive.go, channel_send.go, channel_faults.go (what each failed call means), channel_abilities.go
// (buttons and attachments) and channel_limits.go (long texts). RunBook (book.go) tests a book. MemoryChannel
// (memory_channel.go) is a channel for testing code that uses channels: it needs no fake platform, because it has
// none.
package channelstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
)

// A Book is everything that a book implements, with Close.
type Book interface {
	channels.Book
	channels.SubmissionPublisher
	channels.Subjects
	channels.Drafts
	channels.Processes
	channels.Links
	channels.Memories
	channels.EditableMemories
	channels.Proposals
	Close() error
}

// A Harness gives the suite access to one implementation of the book.
type Harness struct {
	// New makes an empty place for a book (a file's path or a database's URL), which is removed after the test.
	New func(t testing.TB) string
	// Open opens the book at a place, as another process would: the place may already be open.
	Open func(t testing.TB, place string) Book
}

// RunBook checks every promise of channels.Book. It starts child processes that run the test that called it, and
// kills them with SIGKILL.
func RunBook(t *testing.T, h Harness) {
	if inChild(t, h) {
		return
	}
	for _, check := range []struct {
		name string
		run  func(*testing.T, suite)
	}{
		{"begin and mark", testBegin},
		{"begin is decided once", testBeginRace},
		{"unknown sends", testNoSend},
		{"kinds of parts", testPartKinds},
		{"any text comes back as it was", testOddText},
		{"requests", testRequests},
		{"requests are bounded", testRequestsAreBounded},
		{"offers", testOffers},
		{"revoke", testRevoke},
		{"chats", testChats},
		{"who is alone in a chat", testPrivateChatAt},
		{"session of a message", testSessionOf},
		{"names", testNames},
		{"submissions", testSubmissions},
		{"submissions without a bus", testSubmissionsWithoutABus},
		{"keys of submissions live for a day", testSubmissionKeysLiveADay},
		{"submissions expire at any time", testSubmissionsExpireAtAnyTime},
		{"a key is one post's", testPostRace},
		{"subjects", testSubjects},
		{"drafts", testDrafts},
		{"asks", testAsks},
		{"an ask is decided once", testAskRace},
		{"what was approved for a session", testGrants},
		{"processes", testProcesses},
		{"notes", testNotes},
		{"ratings", testRatings},
		{"links", testLinks},
		{"a code links once", testLinkRace},
		{"memories", testMemories},
		{"proposals", testProposals},
		{"a proposal is decided once", testProposalRace},
		{"sign-ins", testSignIns},
		{"a code signs in once", testSignInRace},
		{"what is noted first is kept", testNoteRace},
		{"kill -9 loses nothing that returned", testKilled},
	} {
		t.Run(check.name, func(t *testing.T) { check.run(t, suite{h, h.New(t)}) })
	}
}

// A suite is the state that the tests of one book share: the book's implementation and place.
type suite struct {
	Harness
	place string
}

// open opens the book until the test ends.
func (s suite) open(t *testing.T) Book {
	t.Helper()
	b := &openedBook{Book: s.Open(t, s.place)}
	t.Cleanup(func() { requireNoError(t, b.Close()) })
	return b
}

// reopen closes the book and opens it again.
func (s suite) reopen(t *testing.T, b Book) Book {
	t.Helper()
	requireNoError(t, b.Close())
	return s.open(t)
}

// An openedBook is an open book that both its test and the cleanup after it may close.
type openedBook struct {
	Book
	closed bool
}

func (o *openedBook) Close() error {
	if o.closed {
		return nil
	}
	o.closed = true
	return o.Book.Close()
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newSend returns a send whose parts have these texts.
func newSend(id string, parts ...string) channels.Send {
	send := channels.Send{ID: id, To: bus.Address{Channel: "c", Chat: "1", Thread: "2"}}
	for _, p := range parts {
		send.Parts = append(send.Parts, channels.SentPart{Text: "<b>" + p + "</b>", Plain: p})
	}
	return send
}

// mustBegin calls Begin and fails the test on an error.
func mustBegin(t *testing.T, b Book, send channels.Send) (channels.Send, bool) {
	t.Helper()
	known, fresh, err := b.Begin(t.Context(), send)
	requireNoError(t, err)
	return known, fresh
}

func testBegin(t *testing.T, s suite) {
	b := s.open(t)
	known, fresh := mustBegin(t, b, newSend("m", "one", "two", "three"))
	if !fresh || known.ID != "m" || known.Parts[0].State != channels.Sending || known.Parts[1].State != channels.Queued {
		t.Fatalf("first: %+v, fresh %v", known, fresh)
	}
	requireNoError(t, b.Mark(t.Context(), "m", 0, channels.SentPart{State: channels.Sent, PlatformID: "p1"}))
	for _, late := range []string{channels.Queued, channels.Sending, channels.Drafted, channels.Failed, channels.OutcomeUnknown} { // from a process that was paused
		if err := b.Mark(t.Context(), "m", 0, channels.SentPart{State: late}); !errors.Is(err, channels.ErrFinished) {
			t.Errorf("a sent part is marked as %s: %v, want ErrFinished", late, err)
		}
	}
	requireNoError(t, b.Mark(t.Context(), "m", 1, channels.SentPart{State: channels.Sending, Interrupted: 2}))
	b = s.reopen(t, b)
	known, fresh = mustBegin(t, b, newSend("m", "rendered otherwise"))
	want := []channels.SentPart{
		{State: channels.Sent, PlatformID: "p1"},
		{State: channels.Sending, Interrupted: 2, Text: "<b>two</b>", Plain: "two"},
		{State: channels.Queued, Text: "<b>three</b>", Plain: "three"},
	}
	if fresh || fmt.Sprint(known.Parts) != fmt.Sprint(want) || known.To != (bus.Address{Channel: "c", Chat: "1", Thread: "2"}) {
		t.Errorf("again: %+v, fresh %v; want the parts %+v", known, fresh, want)
	}
	if known.State() != channels.Queued {
		t.Errorf("state %q of a message with parts to send", known.State())
	}
	requireNoError(t, b.Mark(t.Context(), "m", 1, channels.SentPart{State: channels.Queued, Interrupted: 2}))
	requireNoError(t, b.Mark(t.Context(), "m", 2, channels.SentPart{State: channels.Failed, Code: "gone"}))
	requireNoError(t, b.Mark(t.Context(), "m", 0, channels.SentPart{State: channels.Sent, Interrupted: 1}))
	requireNoError(t, b.Mark(t.Context(), "m", 0, channels.SentPart{State: channels.Sent}))
	seen, err := b.Lookup(t.Context(), "m")
	requireNoError(t, err)
	if n := seen.Parts[0].Interrupted; n != 1 {
		t.Errorf("the interruptions went down to %d", n)
	}
	if p := seen.Parts; p[1].Text != "<b>two</b>" || p[1].State != channels.Queued || p[2].Text != "" || p[2].Code != "gone" || seen.State() != channels.Failed {
		t.Errorf("looked up: %+v", seen)
	}
	if time.Since(seen.At) > time.Minute || seen.At.After(time.Now()) {
		t.Errorf("changed at %v", seen.At)
	}
	if known, fresh := mustBegin(t, b, newSend("nothing")); !fresh || known.State() != channels.Sent {
		t.Errorf("a message without parts: %+v, fresh %v", known, fresh)
	}
	if _, fresh := mustBegin(t, b, newSend("nothing")); fresh {
		t.Error("a message without parts is begun twice")
	}
}

func testBeginRace(t *testing.T, s suite) {
	books := []Book{s.open(t), s.open(t)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	freshes := map[string]int{}
	for i := range 40 {
		wg.Go(func() {
			id := fmt.Sprint("m", i%10)
			_, fresh, err := books[i%2].Begin(t.Context(), newSend(id, "x"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if fresh {
				freshes[id]++
			}
		})
	}
	wg.Wait()
	for i := range 10 {
		if n := freshes[fmt.Sprint("m", i)]; n != 1 {
			t.Errorf("message %d was begun %d times", i, n)
		}
	}
}

func testNoSend(t *testing.T, s suite) {
	b := s.open(t)
	if _, err := b.Lookup(t.Context(), "none"); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("lookup: %v", err)
	}
	if err := b.Mark(t.Context(), "none", 0, channels.SentPart{State: channels.Sent}); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("mark: %v", err)
	}
	mustBegin(t, b, newSend("m", "x"))
	if err := b.Mark(t.Context(), "m", 1, channels.SentPart{State: channels.Sent}); !errors.Is(err, channels.ErrNoSend) {
		t.Errorf("mark of a part that is not there: %v", err)
	}
}

// testOddText uses texts with unusual bytes: a model's text may contain any byte, and ids come from outside.
func testOddText(t *testing.T, s suite) {
	b := s.open(t)
	for _, odd := range []string{"nul \x00 in it", "\xff\xfe", `\x00`, "'; DROP TABLE sends; --", "שלום 👩‍👩‍👧"} {
		send := newSend("m"+odd, odd, odd)
		send.To = bus.Address{Channel: "c", Chat: odd, Thread: odd}
		mustBegin(t, b, send)
		requireNoError(t, b.Mark(t.Context(), send.ID, 1, channels.SentPart{State: channels.Failed, PlatformID: odd, Code: odd}))
		known, fresh := mustBegin(t, b, send)
		if fresh || known.To != send.To || known.Parts[0].Text != send.Parts[0].Text || known.Parts[0].Plain != odd ||
			known.Parts[1].PlatformID != odd || known.Parts[1].Code != odd {
			t.Errorf("%q came back as %+v, fresh %v", odd, known, fresh)
		}
		asked, err := b.RequestPairing(t.Context(), "c:"+odd, odd)
		requireNoError(t, err)
		_, err = b.Admit(t.Context(), channels.Admission{Code: asked.Code})
		requireNoError(t, err)
		if p, ok, err := b.FindPairing(t.Context(), "c:"+odd); !ok || err != nil || p.Person != "c:"+odd || p.Chat != odd {
			t.Errorf("%q is paired as %+v, %v, %v", odd, p, ok, err)
		}
		if _, err := b.Admit(t.Context(), channels.Admission{Code: odd, Person: "c:" + odd}); !errors.Is(err, channels.ErrNoCode) {
			t.Errorf("the code %q: %v", odd, err)
		}
		requireNoError(t, b.RecordChat(t.Context(), channels.Chat{Address: send.To, Session: odd}))
		all, err := b.Chats(t.Context())
		requireNoError(t, err)
		if !slices.ContainsFunc(all, func(c channels.Chat) bool { return c.Address == send.To && c.Session == odd }) {
			t.Errorf("%q is not among the chats %+v", odd, all)
		}
	}
}

func testChats(t *testing.T, s suite) {
	b := s.open(t)
	at := func(chat, thread string) bus.Address { return bus.Address{Channel: "c", Chat: chat, Thread: thread} }
	first := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	for _, c := range []channels.Chat{
		{Address: at("2", ""), Session: "main:c:2", Group: true, Seen: first},
		{Address: at("1", "9"), Session: "main:c:1:9", Seen: first},
		{Address: at("1", ""), Session: "main:c:1", Seen: first},
		{Address: at("2", ""), Session: "other", Seen: time.Now()},
	} {
		requireNoError(t, b.RecordChat(t.Context(), c))
	}
	b = s.reopen(t, b)
	all, err := b.Chats(t.Context())
	requireNoError(t, err)
	var got []string
	for _, c := range all {
		got = append(got, fmt.Sprint(c.Address, " ", c.Session, " ", c.Group, " ", c.Seen.Equal(first)))
	}
	if want := "c:1 main:c:1 false true|c:1/9 main:c:1:9 false true|c:2 main:c:2 true true"; strings.Join(got, "|") != want {
		t.Errorf("chats %q, want %q", got, want)
	}
	for _, c := range []struct {
		channel string
		after   bus.Address
		limit   int
		want    string
	}{
		{"", bus.Address{}, 2, "c:1 c:1/9"},
		{"", at("1", ""), 9, "c:1/9 c:2"},
		{"c", at("1", "9"), 9, "c:2"},
		{"c", bus.Address{}, 1, "c:1"},
		{"other", bus.Address{}, 9, ""},
		{"", at("2", ""), 9, ""},
	} {
		page, err := b.ChatsAfter(t.Context(), c.channel, c.after, c.limit)
		requireNoError(t, err)
		var got []string
		for _, chat := range page {
			got = append(got, chat.Address.String())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%d chats of %q after %v: %q, want %q", c.limit, c.channel, c.after, got, c.want)
		}
	}
	// A thread's session is the one that was last assigned.
	requireNoError(t, b.AssignSession(t.Context(), channels.Chat{Address: at("2", "5"), Session: "ops:c:2:5", Group: true, Seen: first}))
	requireNoError(t, b.RecordChat(t.Context(), channels.Chat{Address: at("2", "5"), Session: "main:c:2:5", Group: true, Seen: time.Now()}))
	requireNoError(t, b.AssignSession(t.Context(), channels.Chat{Address: at("1", "9"), Session: "ops:c:1:9", Seen: time.Now()}))
	b = s.reopen(t, b)
	for address, want := range map[bus.Address]string{at("2", "5"): "ops:c:2:5", at("1", "9"): "ops:c:1:9", at("1", ""): "main:c:1", at("9", ""): ""} {
		if session, err := b.SessionAt(t.Context(), address); session != want || err != nil {
			t.Errorf("the session at %s is %q, %v; want %q", address, session, err, want)
		}
	}
}

// testPrivateChatAt checks that a chat is found by its address alone, and that somebody counts as alone only in a chat
// that is known not to be a group.
func testPrivateChatAt(t *testing.T, s suite) {
	b := s.open(t)
	for _, c := range []struct {
		chat, thread, person string
		group                bool
	}{
		{"private", "", "c:7", false},
		{"other", "", "c:8", false},
		{"shared", "", "", true},
		{"shared", "5", "", true},
		{"nobody", "", "", false},
		{"threads", "9", "c:3", false}, // two people: the record of the first thread counts, and not the person who wrote first
		{"threads", "10", "c:2", false},
		{"unnamed first", "1", "", false},
		{"unnamed first", "2", "c:4", false},
		{"mixed", "", "", true},
		{"mixed", "5", "c:5", false},
		{"odd \x00 \xff", "", "c:\x00\xff", false},
	} {
		at := bus.Address{Channel: "c", Chat: c.chat, Thread: c.thread}
		requireNoError(t, b.RecordChat(t.Context(), channels.Chat{Address: at, Session: "main:c", Group: c.group, Person: c.person, Name: "Ada", Seen: time.Now()}))
	}
	b = s.reopen(t, b)
	for _, c := range []struct {
		channel, chat, person string
		alone                 bool
	}{
		{"c", "private", "c:7", true},
		{"c", "other", "c:8", true},
		{"c", "shared", "", false},
		{"c", "unknown", "", false},
		{"d", "private", "", false}, // another channel's chat
		{"c", "", "", false},
		{"c", "nobody", "", true},
		{"c", "threads", "c:2", true},
		{"c", "unnamed first", "", true},
		{"c", "mixed", "c:5", true},
		{"c", "odd \x00 \xff", "c:\x00\xff", true},
	} {
		for _, thread := range []string{"", "5", "9", "unknown"} { // any thread stands for its chat
			person, alone, err := b.PrivateChatAt(t.Context(), bus.Address{Channel: c.channel, Chat: c.chat, Thread: thread})
			if person != c.person || alone != c.alone || err != nil {
				t.Errorf("in %s:%q, thread %q, %q is alone %v, %v; want %q, %v", c.channel, c.chat, thread, person, alone, err, c.person, c.alone)
			}
		}
	}
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if person, alone, err := b.PrivateChatAt(away, bus.Address{Channel: "c", Chat: "private"}); person != "" || alone || err == nil {
		t.Errorf("when it cannot be read: %q, %v, %v", person, alone, err)
	}
}

// testSessionOf checks that the session that wrote a message is found by the message's id on the platform, even if
// the message is not an answer, and that the id finds nothing in other chats.
func testSessionOf(t *testing.T, s suite) {
	b := s.open(t)
	send := channels.Send{ID: "asked", To: bus.Address{Channel: "c", Chat: "1", Thread: "2"}, Session: "ops:c:1:2", Parts: []channels.SentPart{{Text: "May I?", State: channels.Queued}}}
	mustBegin(t, b, send)
	requireNoError(t, b.Mark(t.Context(), send.ID, 0, channels.SentPart{State: channels.Sent, PlatformID: "77"}))
	b = s.reopen(t, b)
	for _, c := range []struct{ chat, message, want string }{{"1", "77", "ops:c:1:2"}, {"1", "78", ""}, {"2", "77", ""}, {"1", "", ""}} {
		if session, err := b.SessionOf(t.Context(), bus.Address{Channel: "c", Chat: c.chat}, c.message); session != c.want || err != nil {
			t.Errorf("message %q in %s is of %q, %v; want %q", c.message, c.chat, session, err, c.want)
		}
	}

}

// writeForever records sends until its process is killed. It reports each call to the book, after the call has
// returned, with say.
func writeForever(ctx context.Context, b Book, say func(string)) error {
	for i := 0; ; i++ {
		id := fmt.Sprint("m", i)
		if _, _, err := b.Begin(ctx, newSend(id, "one", "two")); err != nil {
			return err
		}
		say("begun " + id)
		if err := b.Mark(ctx, id, 0, channels.SentPart{State: channels.Sent, PlatformID: "p" + id}); err != nil {
			return err
		}
		say("marked " + id)
		asked, err := b.RequestPairing(ctx, "c:"+id, "c:"+id)
		if err != nil {
			return err
		}
		say("asked " + id + " " + asked.Code)
	}
}

func testKilled(t *testing.T, s suite) {
	for range 3 {
		place := s.New(t)
		said := killedChild(t, place, 60)
		b := s.Open(t, place)
		for _, line := range said {
			what := strings.Fields(line)
			send, err := b.Lookup(t.Context(), what[1])
			requireNoError(t, err)
			switch what[0] {
			case "begun":
				if len(send.Parts) != 2 || send.Parts[0].State == channels.Queued {
					t.Errorf("begun, and found as %+v", send)
				}
			case "marked":
				if send.Parts[0].State != channels.Sent || send.Parts[0].PlatformID != "p"+what[1] {
					t.Errorf("marked, and found as %+v", send)
				}
			case "asked":
				if p, err := b.RequestPairing(t.Context(), "c:"+what[1], "c:"+what[1]); err != nil || p.Code != what[2] {
					t.Errorf("asked, and found as %+v, %v", p, err)
				}
			}
		}
		requireNoError(t, b.Close())
	}
}
