package gateway_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/gateway"
	"parley/channels/sqlbook"
	"parley/channels/stagetest"
)

// enableIntroduction lets a gateway introduce the bot.
func enableIntroduction(s *testStage, g *gateway.Gateway) {
	g.Notes, g.IntroductionText = s.Book, func(context.Context) (string, error) { return "I am a bot.", nil }
}

func TestAPersonIsIntroducedOnce(t *testing.T) {
	access := gateway.Access{Policy: "list", AllowFrom: []string{"2", "3"}, Owners: []string{"1"}}
	withConfiguredGateway(t, bus.Caps{}, access, enableIntroduction, func(t *testing.T, s *testStage) {
		for _, in := range []bus.Inbound{
			stagetest.PrivateMessage("m1", "1", "the owner"), stagetest.PrivateMessage("m2", "2", "hello"), stagetest.PrivateMessage("m3", "2", "/status"),
			stagetest.PrivateMessage("m4", "9", "a stranger"), groupMessage("m5", "2", "g", "in a group"), groupMessage("m6", "3", "g", "so do I"),
			stagetest.PrivateMessage("m7", "3", "alone"),
		} {
			s.receive(t, in)
		}
		posted := s.takeOutbound(t)
		for chat, want := range map[string]int{"1": 0, "2": 1, "9": 0, "g": 1, "3": 1} {
			if got := posted[chat]; len(got) != want {
				t.Errorf("in %s people are told %+v, want it %d times", chat, got, want)
			}
		}
		if all, err := s.Book.AllNoted(t.Context(), "introduced"); err != nil || len(all) != 3 {
			t.Errorf("noted is %+v, %v", all, err)
		}
	})
}

// A failingNotes is a book that fails to store notes for a while.
type failingNotes struct {
	*sqlbook.Book
	failing bool
}

func (b *failingNotes) SetNote(ctx context.Context, subject, about, value string) error {
	if b.failing {
		return errors.New("the book is away")
	}
	return b.Book.SetNote(ctx, subject, about, value)
}

// If a process dies after the introduction and before the note, the introduction is published again with the
// same id.
func TestAnUnrecordedIntroductionIsSentOnce(t *testing.T) {
	book := &failingNotes{failing: true}
	setup := func(s *testStage, g *gateway.Gateway) {
		enableIntroduction(s, g)
		book.Book, g.Notes = s.Book, book
	}
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, setup, func(t *testing.T, s *testStage) {
		s.receive(t, stagetest.PrivateMessage("m1", "2", "hello"))
		if mail := s.TakeMail(t); len(mail) != 1 {
			t.Errorf("what was said is held up: %+v", mail)
		}
		book.failing = false
		s.receive(t, stagetest.PrivateMessage("m2", "2", "again"))
		s.receive(t, stagetest.PrivateMessage("m3", "2", "and again"))
		if got := s.takeOutbound(t)["2"]; len(got) != 1 || got[0].Text != "I am a bot." {
			t.Errorf("told %+v", got)
		}
		if note, err := s.Book.Noted(t.Context(), "introduced", "c:2"); err != nil || note.Value == "" {
			t.Errorf("noted is %+v, %v", note, err)
		}
	})
}

// A whisperingChannel is a platform that can show a message to only one person.
type whisperingChannel struct {
	*channelstest.MemoryChannel
	mu    sync.Mutex
	fails bool
	heard []string
}

func (w *whisperingChannel) Whisper(_ context.Context, to bus.Address, user string, part channels.Part) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails {
		return &channels.SendError{Fault: channels.Retry, Code: "away"}
	}
	w.heard = append(w.heard, user+" at "+to.String()+": "+part.Text)
	return nil
}

func (*whisperingChannel) PrivateChat(_ context.Context, person string) (bus.Address, error) {
	return bus.Address{Channel: "c", Chat: person}, nil
}

func TestWithWhispersEachPersonInAGroupIsIntroduced(t *testing.T) {
	w := &whisperingChannel{fails: true}
	setup := func(s *testStage, g *gateway.Gateway) {
		enableIntroduction(s, g)
		w.MemoryChannel = s.Platform
		g.Channel = w
	}
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open"}, setup, func(t *testing.T, s *testStage) {
		s.receive(t, groupMessage("m1", "2", "g", "not now"))
		synctest.Wait()
		w.mu.Lock()
		w.fails = false
		w.mu.Unlock()
		for _, in := range []bus.Inbound{groupMessage("m2", "2", "g", "now"), groupMessage("m3", "3", "g", "me too"), groupMessage("m4", "2", "h", "elsewhere"), stagetest.PrivateMessage("m5", "2", "alone")} {
			s.receive(t, in)
		}
		if want := []string{"2 at c:g: I am a bot.", "3 at c:g: I am a bot."}; !slices.Equal(w.heard, want) {
			t.Errorf("whispered %q, want %q", w.heard, want)
		}
		if got := s.takeOutbound(t); len(got) != 0 {
			t.Errorf("told once more: %+v", got)
		}
	})
}
