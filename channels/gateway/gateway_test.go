package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/gateway"
	"parley/channels/sqlbook"
	"parley/channels/stagetest"
)

// A testStage is a bus, a book and a platform in memory, with a gate.
type testStage struct {
	*stagetest.Stage
	gate *gateway.Gate
}

func newStage(t *testing.T, dir string, caps bus.Caps) *testStage {
	t.Helper()
	return &testStage{stagetest.Open(t, dir, sqlitebus.Config{Caps: caps}), &gateway.Gate{}}
}

// withGateway runs a gateway in a synctest bubble while the test runs.
func withGateway(t *testing.T, caps bus.Caps, access gateway.Access, run func(*testing.T, *testStage)) {
	t.Helper()
	withConfiguredGateway(t, caps, access, nil, run)
}

// withConfiguredGateway does what withGateway does, and lets setup change the gateway before it starts.
func withConfiguredGateway(t *testing.T, caps bus.Caps, access gateway.Access, setup func(*testStage, *gateway.Gateway), run func(*testing.T, *testStage)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, dir, caps)
		defer s.Close()
		s.gate.Set(access)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		g := &gateway.Gateway{
			Name: "c", Channel: s.Platform, Bus: s.Bus, Gate: s.gate, Chats: s.Book, Pairings: s.Book, Log: s.Logger(),
			Route: func(_ context.Context, in bus.Inbound) (gateway.RouteResult, error) {
				if in.At.Chat == "nowhere" {
					return gateway.RouteResult{}, errors.New("no agent")
				}
				return gateway.RouteResult{Session: "main:" + in.At.String()}, nil
			},
		}
		if setup != nil {
			setup(s, g)
		}
		go func() { ended <- g.Run(ctx) }()
		run(t, s)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("gateway ended with %v", err)
		}
	})
}

func (s *testStage) receive(t *testing.T, in bus.Inbound) {
	t.Helper()
	if err := s.Platform.Say(t.Context(), in); err != nil {
		t.Errorf("message %s was not acknowledged: %v", in.ID, err)
	}
	synctest.Wait()
}

func TestStrangersMessagesLeaveNoTrace(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *testStage) {
		for i := range 4 { // the fourth message is treated like the first
			user := fmt.Sprint(100 + i)
			s.receive(t, stagetest.PrivateMessage("a"+user, user, "my secret plan"))
			told := s.Platform.Texts(user)
			if len(told) != 1 || !strings.Contains(told[0], "c:"+user) || !strings.Contains(told[0], "parley pairing approve ") {
				t.Errorf("stranger %s was told %q", user, told)
			}
		}
		s.receive(t, stagetest.PrivateMessage("again", "100", "hello?"))
		if n := len(s.Platform.Texts("100")); n != 1 {
			t.Errorf("a stranger was told %d times within an hour", n)
		}
		group := stagetest.PrivateMessage("g", "100", "my secret plan")
		group.Group, group.At.Chat = true, "group"
		s.receive(t, group)
		if told := s.Platform.Texts("group"); told != nil {
			t.Errorf("a group was told %q", told)
		}
		if mail := s.TakeMail(t); len(mail) != 0 {
			t.Errorf("published: %+v", mail)
		}
		if chats, err := s.Book.Chats(t.Context()); err != nil || len(chats) != 0 {
			t.Errorf("chats %+v, %v", chats, err)
		}
		if strings.Contains(s.Log.String(), "secret") || strings.Contains(s.Log.String(), "Mallory") {
			t.Errorf("log: %s", s.Log)
		}
		time.Sleep(time.Hour)
		s.receive(t, stagetest.PrivateMessage("later", "100", "hello?"))
		if n := len(s.Platform.Texts("100")); n != 2 {
			t.Errorf("told %d times after an hour", n)
		}
	})
}

func TestAFloodOfStrangersCausesFewReplies(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *testStage) {
		for i := range 5000 {
			if err := s.Platform.Say(t.Context(), stagetest.PrivateMessage(fmt.Sprint(i), fmt.Sprint(i), "x")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := len(s.Platform.Sent()); n == 0 || n > 100 {
			t.Errorf("%d refusals", n)
		}
		asked, err := s.Book.Pairings(t.Context())
		if err != nil || len(asked) > 100 {
			t.Errorf("%d requests, %v", len(asked), err)
		}
		time.Sleep(time.Minute)
		s.receive(t, stagetest.PrivateMessage("new", "new", "hello"))
		if len(s.Platform.Texts("new")) != 1 {
			t.Error("after the flood a stranger is not told anymore")
		}
	})
}

func TestPairingAdmits(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *testStage) {
		s.receive(t, stagetest.PrivateMessage("1", "7", "hello"))
		asked, err := s.Book.Pairings(t.Context())
		if err != nil || len(asked) != 1 {
			t.Fatalf("%+v, %v", asked, err)
		}
		if _, err := s.Book.Admit(t.Context(), channels.Admission{Code: asked[0].Code}); err != nil {
			t.Fatal(err)
		}
		s.receive(t, stagetest.PrivateMessage("2", "7", "hello again"))
		s.receive(t, stagetest.PrivateMessage("2", "7", "hello again")) // a repetition of the same message
		mail := s.TakeMail(t)
		if len(mail) != 1 || mail[0].Text != "hello again" || mail[0].Kind != bus.Said || mail[0].From.Owner {
			t.Errorf("mail %+v", mail)
		}
		chats, err := s.Book.Chats(t.Context())
		if err != nil || len(chats) != 1 || chats[0].Address.Chat != "7" || chats[0].Session != "main:c:7" {
			t.Errorf("chats %+v, %v", chats, err)
		}
		if err := s.Book.Revoke(t.Context(), "c:7"); err != nil {
			t.Fatal(err)
		}
		s.receive(t, stagetest.PrivateMessage("3", "7", "still here?"))
		if mail := s.TakeMail(t); len(mail) != 0 {
			t.Errorf("after the revocation: %+v", mail)
		}
	})
}

func TestTheOwnersCodeMakesAnOwner(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *testStage) {
		code, err := s.Book.OfferOwner(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		group := stagetest.PrivateMessage("g", "7", code)
		group.Group = true
		s.receive(t, group)
		s.receive(t, stagetest.PrivateMessage("wrong", "8", "/start "+strings.Repeat("A", len(code))))
		if told := s.Platform.Texts("8"); len(told) != 1 || !strings.Contains(told[0], "pairing approve") {
			t.Errorf("whoever guessed was told %q", told)
		}
		s.receive(t, stagetest.PrivateMessage("1", "7", "/start "+code))
		if told := s.Platform.Texts("7"); len(told) != 1 || !strings.Contains(told[0], "You own this bot now") {
			t.Errorf("the owner was told %q", told)
		}
		s.receive(t, stagetest.PrivateMessage("2", "7", "hello"))
		if mail := s.TakeMail(t); len(mail) != 1 || !mail[0].From.Owner {
			t.Errorf("mail %+v", mail)
		}
		time.Sleep(time.Minute)
		s.receive(t, stagetest.PrivateMessage("3", "9", code))
		if p, ok, err := s.Book.FindPairing(t.Context(), "c:9"); ok || err != nil {
			t.Errorf("a code made two owners: %+v, %v", p, err)
		}
	})
}

func TestGuessesOfCodesAreLimited(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *testStage) {
		code, err := s.Book.OfferOwner(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		s.receive(t, stagetest.PrivateMessage("wrong", "7", strings.Repeat("A", len(code))))
		s.receive(t, stagetest.PrivateMessage("right", "7", code)) // at the same moment
		if _, ok, _ := s.Book.FindPairing(t.Context(), "c:7"); ok {
			t.Error("a guess right behind another was looked at")
		}
		time.Sleep(10 * time.Second)
		s.receive(t, stagetest.PrivateMessage("later", "7", code))
		if _, ok, _ := s.Book.FindPairing(t.Context(), "c:7"); !ok {
			t.Error("a good code is not taken later")
		}
	})
}

func TestCommands(t *testing.T) {
	withGateway(t, bus.Caps{Inbound: 1}, gateway.Access{Policy: "open", Owners: []string{"1"}}, func(t *testing.T, s *testStage) {
		for i, c := range []struct{ text, kind, name, args string }{
			{"/new", bus.Command, "new", ""},
			{" /Help me  please ", bus.Command, "help", "me  please"},
			{"/start", bus.Command, "help", ""},
			{"/start\ncode", bus.Command, "help", "code"},
			{"/etc/hosts is what?", bus.Said, "/etc/hosts is what?", ""},
			{"say /stop", bus.Said, "say /stop", ""},
			{"/", bus.Said, "/", ""},
			{"", bus.Said, "", ""},
		} {
			user := fmt.Sprint(i)
			s.receive(t, stagetest.PrivateMessage("m"+user, user, c.text))
			mail := s.TakeMail(t)
			if len(mail) != 1 || mail[0].Kind != c.kind || mail[0].Text != c.name || mail[0].Args != c.args || mail[0].From.Owner != (user == "1") {
				t.Errorf("%q became %+v", c.text, mail)
			}
		}
		// Urgent commands are accepted even if the mailbox is full.
		s.receive(t, stagetest.PrivateMessage("a", "9", "one"))
		s.receive(t, stagetest.PrivateMessage("b", "9", "/stop"))
		s.receive(t, stagetest.PrivateMessage("c", "9", "/status"))
		if mail := s.TakeMail(t); len(mail) != 3 {
			t.Errorf("mail %+v", mail)
		}
	})
}

func TestARefusedMessageIsExplained(t *testing.T) {
	withGateway(t, bus.Caps{Inbound: 1}, gateway.Access{Policy: "open"}, func(t *testing.T, s *testStage) {
		for i := range 5 {
			s.receive(t, stagetest.PrivateMessage(fmt.Sprint("m", i), "7", "hello"))
		}
		if told := s.Platform.Texts("7"); len(told) != 1 || !strings.Contains(told[0], "Too many messages") {
			t.Errorf("told %q", told)
		}
		time.Sleep(time.Minute)
		s.receive(t, stagetest.PrivateMessage("m9", "7", "hello"))
		if n := len(s.Platform.Texts("7")); n != 2 {
			t.Errorf("told %d times after a minute", n)
		}
		s.receive(t, stagetest.PrivateMessage("big", "8", strings.Repeat("x", bus.MaxBody)))
		if told := s.Platform.Texts("8"); len(told) != 1 || !strings.Contains(told[0], "too long") {
			t.Errorf("told %q", told)
		}
		s.receive(t, stagetest.PrivateMessage("lost", "nowhere", "hello"))
		if told := s.Platform.Texts("nowhere"); len(told) != 1 {
			t.Errorf("told %q", told)
		}
		quiet := stagetest.PrivateMessage("quiet", "7", "to others")
		quiet.Group, quiet.Mentioned = true, false
		s.receive(t, quiet)
		if mail := s.TakeMail(t); len(mail) != 1 {
			t.Errorf("mail %+v", mail)
		}
	})
}

func TestAMessageThatIsNotPublishedIsNotAcknowledged(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, func(t *testing.T, s *testStage) {
		if err := s.Bus.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Platform.Say(t.Context(), stagetest.PrivateMessage("1", "7", "hello")); err == nil {
			t.Error("acknowledged, and the bus is closed")
		}
	})
}

// A forgetfulBook is a book that fails to record chats for a while.
type forgetfulBook struct {
	*sqlbook.Book
	failing bool
	notes   int
}

func (f *forgetfulBook) RecordChat(ctx context.Context, c channels.Chat) error {
	if f.failing {
		return errors.New("the book is away")
	}
	f.notes++
	return f.Book.RecordChat(ctx, c)
}

// In a thread of a group, later messages need no mention, so the record that the bot takes part must not be lost.
func TestAThreadThatCannotBeRecordedIsPassedOnAgain(t *testing.T) {
	book := &forgetfulBook{failing: true}
	setup := func(s *testStage, g *gateway.Gateway) { book.Book, g.Chats = s.Book, book }
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, setup, func(t *testing.T, s *testStage) {
		thread := stagetest.PrivateMessage("1", "7", "hello")
		thread.SentAt = time.Now().Add(-time.Hour)
		thread.Group, thread.At = true, bus.Address{Channel: "c", Chat: "room", Thread: "17"}
		if err := s.Platform.Say(t.Context(), thread); err == nil {
			t.Error("acknowledged, and nobody will know of the thread")
		}
		s.receive(t, stagetest.PrivateMessage("2", "8", "elsewhere")) // a private chat does not depend on the record
		book.failing = false
		s.receive(t, thread)
		if since, joined, err := s.Book.TalkedSince(t.Context(), thread.At); err != nil || !joined || !since.Equal(thread.SentAt) {
			t.Errorf("the thread is noted: since %v, %t, %v", since, joined, err)
		}
		if got := s.TakeMail(t); len(got) != 2 {
			t.Errorf("mail %+v", got)
		}
		// A recorded chat is recorded again after a while, because the record may have been erased.
		again := thread
		for i, wait := range []time.Duration{0, 2 * time.Hour} {
			time.Sleep(wait)
			again.ID = fmt.Sprint("again-", i)
			s.receive(t, again)
			if book.notes != 1+i {
				t.Errorf("after %v it was noted %d times", wait, book.notes)
			}
		}
	})
}

func TestAllowListAdmitsThePeopleItNames(t *testing.T) {
	access := gateway.Access{Policy: "list", AllowFrom: []string{"7"}}
	withGateway(t, bus.Caps{}, access, func(t *testing.T, s *testStage) {
		s.receive(t, stagetest.PrivateMessage("1", "7", "hello"))
		s.receive(t, stagetest.PrivateMessage("2", "8", "hello"))
		if mail := s.TakeMail(t); len(mail) != 1 || mail[0].ID != "1" {
			t.Errorf("mail %+v", mail)
		}
		if told := s.Platform.Texts("8"); len(told) != 1 || !strings.Contains(told[0], `allow_from = ["8"]`) {
			t.Errorf("told %q", told)
		}
		access.AllowFrom = append(access.AllowFrom, "8")
		s.gate.Set(access) // as after SIGHUP
		s.receive(t, stagetest.PrivateMessage("3", "8", "hello"))
		if mail := s.TakeMail(t); len(mail) != 1 {
			t.Errorf("mail %+v", mail)
		}
	})
}

func TestAMessageThatPanicsDoesNotBlockItsChat(t *testing.T) {
	dir := t.TempDir()
	s := newStage(t, dir, bus.Caps{})
	defer s.Close()
	s.gate.Set(gateway.Access{Policy: "open"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	g := &gateway.Gateway{
		Name: "c", Channel: s.Platform, Bus: s.Bus, Gate: s.gate, Chats: s.Book, Pairings: s.Book,
		Log:   slog.New(slog.DiscardHandler),
		Route: func(context.Context, bus.Inbound) (gateway.RouteResult, error) { panic("broken") },
	}
	go func() { ended <- g.Run(ctx) }()
	for i := range 3 {
		err := s.Platform.Say(t.Context(), stagetest.PrivateMessage("1", "7", "hello"))
		if last := i == 2; (err == nil) != last {
			t.Errorf("time %d: %v", i, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestCheckAccess(t *testing.T) {
	p := channelstest.NewMemoryChannel()
	for _, good := range []gateway.Access{
		{}, {Policy: "pairing"}, {Policy: "open"}, {Policy: "list", AllowFrom: []string{"1"}}, {Policy: "list", Owners: []string{"1"}},
	} {
		if err := gateway.CheckAccess(p, good); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []gateway.Access{
		{Policy: "nobody"}, {Policy: "list"}, {Policy: "members"}, {AllowFrom: []string{"1"}}, {Policy: "open", AllowFrom: []string{"1"}},
	} {
		if err := gateway.CheckAccess(p, bad); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

// In a private chat, a person is told that a command does not exist, and the model never sees it. Any other
// text that begins with a slash is published.
func TestUnknownCommandsAreExplained(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *testStage) {
		admitPerson(t, s, "1")
		s.takeOutbound(t)
		for range 2 { // platforms may deliver a message twice
			s.receive(t, stagetest.PrivateMessage("m1", "1", "/stattus now"))
		}
		s.receive(t, stagetest.PrivateMessage("m2", "1", "/frobnicate"))
		told := s.takeOutbound(t)["1"]
		if len(told) != 2 || told[0].ReplyTo != "m1" && told[0].ReplyTo != "" || !strings.Contains(told[0].Text, "`/stattus`. Did you mean `/status`?") ||
			strings.Contains(told[1].Text, "mean") || !strings.Contains(told[1].Text, "`/help`") {
			t.Errorf("told %+v", told)
		}
		picture := stagetest.PrivateMessage("m6", "1", "/wow")
		picture.Attachments = []bus.Attachment{{Name: "a.png"}}
		for _, in := range []bus.Inbound{stagetest.PrivateMessage("m3", "1", "/etc/passwd is what?"), stagetest.PrivateMessage("m4", "1", "/ or not"), groupMessage("m5", "1", "g", "/other_bot"), picture} {
			s.receive(t, in)
		}
		if mail := s.TakeMail(t); len(mail) != 4 {
			t.Errorf("published %+v", mail)
		}
	})
}
