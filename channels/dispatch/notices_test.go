package dispatch_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
)

// hears has an agent listen everywhere but in one chat.
func hears(_ context.Context, at bus.Address) (string, error) {
	if at.Chat == "deaf" {
		return "", nil
	}
	return "main:" + strings.ReplaceAll(at.String(), "/", ":"), nil
}

// sessionNotice is what somebody has told in another chat.
func sessionNotice(id, chat, words string) bus.Outbound {
	out := outbound(id, chat, "anna asks me to tell you:\n\n> "+words)
	out.Session, out.Told = "main:c:anna", &bus.Telling{For: bus.Person{ID: "c:anna", Name: "Anna"}, At: bus.Address{Channel: "c", Chat: "anna"}, Words: words, Own: true}
	return out
}

func TestTheSessionOfAChatLearnsWhatWasToldThere(t *testing.T) {
	away := []error{&channels.SendError{Fault: channels.Retry, Code: "503"}, errors.New("connection reset")}
	setup := func(s *stage, d *dispatch.Dispatcher) {
		looked := 0
		d.SessionAt = func(ctx context.Context, at bus.Address) (string, error) {
			if looked++; looked < 3 {
				return "", errors.New("the book is away")
			}
			return hears(ctx, at)
		}
		d.Channel = channelstest.ThreadingChannel{MemoryChannel: s.Platform, OnReply: func() error {
			if len(away) == 0 {
				return nil
			}
			err := away[0]
			away = away[1:]
			return err
		}}
	}
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		s.post(t, sessionNotice("a", "1", "lunch at noon"), outbound("b", "1", "an answer"), sessionNotice("c", "deaf", "anybody?"))
		time.Sleep(time.Minute)
		synctest.Wait()
		wantTexts(t, s, "1", "anna asks me to tell you:\n\n> lunch at noon", "an answer")
		lease, err := s.Bus.Claim(t.Context(), bus.InboundTopic)
		if err != nil {
			t.Fatal(err)
		}
		mail, err := lease.Mail(t.Context(), 0)
		if err != nil || len(mail) != 1 || mail[0].Key != "main:c:1:"+s.state(t, "a").Parts[0].PlatformID || !mail[0].Urgent {
			t.Fatalf("mail %+v, %v", mail, err)
		}
		in, err := bus.DecodeInbound(mail[0].Body)
		if err != nil || in.ID != "a#told" || in.Kind != bus.Notice || len(in.Quotes) != 1 || strings.Contains(in.Text, "lunch") {
			t.Fatalf("notice %+v, %v", in, err)
		}
		if q := in.Quotes[0]; q.Kind != bus.Told || q.From.ID != "c:anna" || q.From.Name != "Anna" || q.Chat != "c:anna" || q.Text != "lunch at noon" || q.At.IsZero() || !q.Own {
			t.Errorf("quote %+v", q)
		}
		if d := s.Depth(t, bus.InboundTopic); d.Waiting+d.Leased != 1 {
			t.Errorf("in all: %+v", d)
		}
	})
}

// A note that cannot be made does not keep what is behind it for ever.
func TestAChatOfWhichNothingCanBeFoundOutIsNotStuck(t *testing.T) {
	setup := func(s *stage, d *dispatch.Dispatcher) {
		d.SessionAt = hears
		d.Channel = channelstest.ThreadingChannel{MemoryChannel: s.Platform, OnReply: func() error {
			return &channels.SendError{Fault: channels.Retry, Code: "internal_error"}
		}}
	}
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		told := sessionNotice("a", "1", "lunch at noon")
		told.At = time.Now()
		s.post(t, told, outbound("b", "1", "an answer"))
		lasts(25 * time.Hour)
		wantTexts(t, s, "1", "anna asks me to tell you:\n\n> lunch at noon", "an answer")
		if mail := s.Mail(t); len(mail) > 0 {
			t.Errorf("noted %+v", mail)
		}
	})
}

// Of what has not arrived, or may not have, no session is told that it has.
func TestNothingIsNotedOfWhatIsNotKnownToHaveArrived(t *testing.T) {
	setup := func(s *stage, d *dispatch.Dispatcher) {
		d.SessionAt, d.Policy.OnUnknown = hears, "drop"
		d.Notify = nil
		s.Platform.OnSend = func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
			switch to.Chat {
			case "1":
				return true, errors.New("connection reset")
			case "2":
				return false, &channels.SendError{Fault: channels.Rejected, Code: "chat_not_found"}
			}
			return true, nil
		}
	}
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		late := sessionNotice("c", "3", "too late")
		late.Expires = time.Now()
		s.post(t, sessionNotice("a", "1", "perhaps"), sessionNotice("b", "2", "no"), late)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.state(t, "a").State() != channels.Unsure || s.state(t, "b").State() != channels.Failed || s.state(t, "c").State() != channels.Failed {
			t.Errorf("book: %+v %+v %+v", s.state(t, "a"), s.state(t, "b"), s.state(t, "c"))
		}
		if mail := s.Mail(t); len(mail) > 0 {
			t.Errorf("noted %+v", mail)
		}
	})
}

func TestKillPointsOfNotices(t *testing.T) {
	for _, at := range []string{"send:begun 1", "send:sent 1", "send:marked 1", "send:marked 2", "send:told 1", "send:told 2", "send:settled 1"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := setStage(t, dir, bus.Caps{})
			s.post(t, sessionNotice("a", "1", "one"), sessionNotice("b", "1", "two"))
			s.Close()
			killChild(t, killDir+"="+dir, killAt+"="+at)
			s = setStage(t, dir, bus.Caps{})
			defer s.Close()
			drain(t, s, filePlatform{filepath.Join(dir, "sent")}, nil)
			mail := s.Mail(t)
			if len(mail) != 2 || mail[0].ID != "a#told" || mail[1].ID != "b#told" || mail[1].Quotes[0].Text != "two" {
				t.Errorf("noted %+v", mail)
			}
		})
	}
}
