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

// introduces has a gateway introduce the bot.
func introduces(s *stage, g *gateway.Gateway) {
	g.Notes, g.Introduction = s.Book, func(context.Context) (string, error) { return "I am a bot.", nil }
}

func TestAPersonIsToldOnceWhatTheBotIs(t *testing.T) {
	access := gateway.Access{Policy: "list", AllowFrom: []string{"2", "3"}, Owners: []string{"1"}}
	inGatewayOn(t, bus.Caps{}, access, introduces, func(t *testing.T, s *stage) {
		for _, in := range []bus.Inbound{
			stagetest.Said("m1", "1", "the owner"), stagetest.Said("m2", "2", "hello"), stagetest.Said("m3", "2", "/status"),
			stagetest.Said("m4", "9", "a stranger"), inGroup("m5", "2", "g", "in a group"), inGroup("m6", "3", "g", "so do I"),
			stagetest.Said("m7", "3", "alone"),
		} {
			s.say(t, in)
		}
		posted := s.posted(t)
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

// A sulking book takes no notes for a while.
type sulking struct {
	*sqlbook.Book
	sulks bool
}

func (b *sulking) SetNote(ctx context.Context, subject, about, value string) error {
	if b.sulks {
		return errors.New("the book is away")
	}
	return b.Book.SetNote(ctx, subject, about, value)
}

// Who dies between telling and noting tells it again, under the same id.
func TestAnIntroductionThatWasNotNotedIsSentOnce(t *testing.T) {
	book := &sulking{sulks: true}
	setup := func(s *stage, g *gateway.Gateway) {
		introduces(s, g)
		book.Book, g.Notes = s.Book, book
	}
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "open"}, setup, func(t *testing.T, s *stage) {
		s.say(t, stagetest.Said("m1", "2", "hello"))
		if mail := s.Mail(t); len(mail) != 1 {
			t.Errorf("what was said is held up: %+v", mail)
		}
		book.sulks = false
		s.say(t, stagetest.Said("m2", "2", "again"))
		s.say(t, stagetest.Said("m3", "2", "and again"))
		if got := s.posted(t)["2"]; len(got) != 1 || got[0].Text != "I am a bot." {
			t.Errorf("told %+v", got)
		}
		if note, err := s.Book.Noted(t.Context(), "introduced", "c:2"); err != nil || note.Value == "" {
			t.Errorf("noted is %+v, %v", note, err)
		}
	})
}

// A whispering platform shows something to one person alone.
type whispering struct {
	*channelstest.MemoryChannel
	mu    sync.Mutex
	fails bool
	heard []string
}

func (w *whispering) Whisper(_ context.Context, to bus.Address, user string, part channels.Part) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fails {
		return &channels.SendError{Fault: channels.Retry, Code: "away"}
	}
	w.heard = append(w.heard, user+" at "+to.String()+": "+part.Text)
	return nil
}

func (*whispering) PrivateChat(_ context.Context, person string) (bus.Address, error) {
	return bus.Address{Channel: "c", Chat: person}, nil
}

func TestWhereThePlatformWhispersEachPersonInAGroupIsTold(t *testing.T) {
	w := &whispering{fails: true}
	setup := func(s *stage, g *gateway.Gateway) {
		introduces(s, g)
		w.MemoryChannel = s.Platform
		g.Channel = w
	}
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "open"}, setup, func(t *testing.T, s *stage) {
		s.say(t, inGroup("m1", "2", "g", "not now"))
		synctest.Wait()
		w.mu.Lock()
		w.fails = false
		w.mu.Unlock()
		for _, in := range []bus.Inbound{inGroup("m2", "2", "g", "now"), inGroup("m3", "3", "g", "me too"), inGroup("m4", "2", "h", "elsewhere"), stagetest.Said("m5", "2", "alone")} {
			s.say(t, in)
		}
		if want := []string{"2 at c:g: I am a bot.", "3 at c:g: I am a bot."}; !slices.Equal(w.heard, want) {
			t.Errorf("whispered %q, want %q", w.heard, want)
		}
		if got := s.posted(t); len(got) != 0 {
			t.Errorf("told once more: %+v", got)
		}
	})
}
