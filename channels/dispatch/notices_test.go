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

// sessionAt has an agent listen at every address except one chat.
func sessionAt(_ context.Context, at bus.Address) (string, error) {
	if at.Chat == "deaf" {
		return "", nil
	}
	return "main:" + strings.ReplaceAll(at.String(), "/", ":"), nil
}

// sessionNotice returns a message that somebody has sent to another chat through the bot.
func sessionNotice(id, chat, words string) bus.Outbound {
	out := newOutbound(id, chat, "anna asked me to tell you:\n\n> "+words)
	out.Session, out.Told = "main:c:anna", &bus.Telling{For: bus.Person{ID: "c:anna", Name: "Anna"}, At: bus.Address{Channel: "c", Chat: "anna"}, Words: words, Own: true}
	return out
}

func TestTheChatsSessionIsToldOfTellings(t *testing.T) {
	away := []error{&channels.SendError{Fault: channels.Retry, Code: "503"}, errors.New("connection reset")}
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		looked := 0
		d.SessionAt = func(ctx context.Context, at bus.Address) (string, error) {
			if looked++; looked < 3 {
				return "", errors.New("the book is away")
			}
			return sessionAt(ctx, at)
		}
		d.Channel = channelstest.ReplyThreadChannel{MemoryChannel: s.Platform, OnReply: func() error {
			if len(away) == 0 {
				return nil
			}
			err := away[0]
			away = away[1:]
			return err
		}}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, sessionNotice("a", "1", "lunch at noon"), newOutbound("b", "1", "an answer"), sessionNotice("c", "deaf", "anybody?"))
		time.Sleep(time.Minute)
		synctest.Wait()
		wantTexts(t, s, "1", "anna asked me to tell you:\n\n> lunch at noon", "an answer")
		lease, err := s.Bus.Claim(t.Context(), bus.InboundTopic)
		if err != nil {
			t.Fatal(err)
		}
		mail, err := lease.Mail(t.Context(), 0)
		if err != nil || len(mail) != 1 || mail[0].Key != "main:c:1:"+s.lookup(t, "a").Parts[0].PlatformID || !mail[0].Urgent {
			t.Fatalf("mail %+v, %v", mail, err)
		}
		in, err := bus.DecodeInbound(mail[0].Body)
		if err != nil || in.ID != "a#told" || in.Kind != bus.Notice || len(in.Quotes) != 1 || strings.Contains(in.Text, "lunch") {
			t.Fatalf("notice %+v, %v", in, err)
		}
		if q := in.Quotes[0]; q.Kind != bus.Told || q.From.ID != "c:anna" || q.From.Name != "Anna" || q.Chat != "c:anna" || q.Text != "lunch at noon" || q.At.IsZero() || !q.Own {
			t.Errorf("quote %+v", q)
		}
		if d := s.TopicDepth(t, bus.InboundTopic); d.Waiting+d.Leased != 1 {
			t.Errorf("in all: %+v", d)
		}
	})
}

// If the session of a chat can never be found, the messages behind do not wait forever.
func TestALookupThatKeepsFailingDoesNotBlockTheChat(t *testing.T) {
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		d.SessionAt = sessionAt
		d.Channel = channelstest.ReplyThreadChannel{MemoryChannel: s.Platform, OnReply: func() error {
			return &channels.SendError{Fault: channels.Retry, Code: "internal_error"}
		}}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		told := sessionNotice("a", "1", "lunch at noon")
		told.At = time.Now()
		s.publish(t, told, newOutbound("b", "1", "an answer"))
		sleep(25 * time.Hour)
		wantTexts(t, s, "1", "anna asked me to tell you:\n\n> lunch at noon", "an answer")
		if mail := s.TakeMail(t); len(mail) > 0 {
			t.Errorf("noted %+v", mail)
		}
	})
}

// A session is told only of messages that are known to have arrived.
func TestNoSessionIsToldOfAMessageThatMayNotHaveArrived(t *testing.T) {
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		d.SessionAt, d.Policy.OnUnknown = sessionAt, "drop"
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
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		late := sessionNotice("c", "3", "too late")
		late.Expires = time.Now()
		s.publish(t, sessionNotice("a", "1", "perhaps"), sessionNotice("b", "2", "no"), late)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.lookup(t, "a").State() != channels.OutcomeUnknown || s.lookup(t, "b").State() != channels.Failed || s.lookup(t, "c").State() != channels.Failed {
			t.Errorf("book: %+v %+v %+v", s.lookup(t, "a"), s.lookup(t, "b"), s.lookup(t, "c"))
		}
		if mail := s.TakeMail(t); len(mail) > 0 {
			t.Errorf("noted %+v", mail)
		}
	})
}

func TestKillPointsOfNotices(t *testing.T) {
	for _, at := range []string{"send:begun 1", "send:sent 1", "send:marked 1", "send:marked 2", "send:told 1", "send:told 2", "send:settled 1"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newStage(t, dir, bus.Caps{})
			s.publish(t, sessionNotice("a", "1", "one"), sessionNotice("b", "1", "two"))
			s.Close()
			killChild(t, envKillDir+"="+dir, envKillAt+"="+at)
			s = newStage(t, dir, bus.Caps{})
			defer s.Close()
			dispatchUntilEmpty(t, s, filePlatform{filepath.Join(dir, "sent")}, nil)
			mail := s.TakeMail(t)
			if len(mail) != 2 || mail[0].ID != "a#told" || mail[1].ID != "b#told" || mail[1].Quotes[0].Text != "two" {
				t.Errorf("noted %+v", mail)
			}
		})
	}
}

// operatorAnswer returns an operator's message in a chat.
func operatorAnswer(id, chat, words string) bus.Outbound {
	out := newOutbound(id+"/0", chat, "**Operator:**\n\n"+words)
	out.Session = "main:c:" + chat
	out.Told = &bus.Telling{For: bus.Person{ID: "web:owner", Owner: true}, At: out.To, Words: words, Own: true, Operator: true, Post: id}
	return out
}

// The session that the message names is told what an operator said in its chat, no matter where a reply would
// go. It is told even if the message has not arrived, or may not have.
func TestASessionIsToldWhatAnOperatorSaid(t *testing.T) {
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		d.SessionAt = func(context.Context, bus.Address) (string, error) { return "main:c:elsewhere", nil }
		d.Policy.OnUnknown, d.Notify = "drop", dispatch.TellSession(s.Bus)
		s.Platform.OnSend = func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
			switch to.Chat {
			case "2":
				return true, errors.New("connection reset")
			case "3":
				return false, &channels.SendError{Fault: channels.Rejected, Code: "chat_not_found"}
			}
			return true, nil
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, operatorAnswer("a", "1", "I have repaired it"), operatorAnswer("b", "2", "perhaps"), operatorAnswer("c", "3", "no"))
		time.Sleep(time.Minute)
		synctest.Wait()
		notices := map[string]bus.Inbound{}
		for _, in := range s.TakeMail(t) {
			notices[in.ID] = in
		}
		if len(notices) != 3 {
			t.Errorf("noted %+v", notices)
		}
		for id, want := range map[string]string{"a/0#told": "not you", "b/0#told": "may not have arrived"} {
			in := notices[id]
			if !in.IsOperators() || !strings.Contains(in.Text, want) || !in.Quotes[0].Own || in.Quotes[0].Chat != "" || in.Quotes[0].From.ID != "web:owner" || in.Of != id[:1] {
				t.Errorf("%s is %+v", id, in)
			}
		}
		if in := notices["a/0#told"]; in.Quotes[0].Text != "I have repaired it" || strings.Contains(in.Text, "may not") {
			t.Errorf("what has arrived is noted as %+v", in)
		}
		if in := notices["c/0#undelivered"]; in.Kind != bus.Notice || in.IsOperators() || !strings.Contains(in.Text, "operator") || !strings.Contains(in.Text, "chat_not_found") {
			t.Errorf("what was refused is noted as %+v", in)
		}
	})
}

// Wherever the process is killed, an operator's answer is sent once, and its session is told once.
func TestKillPointsOfAnOperatorsAnswer(t *testing.T) {
	for _, at := range []string{"send:begun 1", "send:held 1", "send:sent 1", "send:marked 1", "send:told 1", "send:settled 1"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newStage(t, dir, bus.Caps{})
			s.publish(t, operatorAnswer("a", "1", "one"), operatorAnswer("b", "1", "two"))
			s.Close()
			killChild(t, envKillDir+"="+dir, envKillAt+"="+at)
			s = newStage(t, dir, bus.Caps{})
			defer s.Close()
			file := filePlatform{filepath.Join(dir, "sent")}
			dispatchUntilEmpty(t, s, findingFilePlatform{file, t}, nil)
			mail := s.TakeMail(t)
			if len(mail) != 2 || mail[0].ID != "a/0#told" || mail[1].ID != "b/0#told" || mail[1].Quotes[0].Text != "two" {
				t.Errorf("noted %+v", mail)
			}
			if got := strings.Join(file.readArrived(t)["1"], " "); got != "a/0/0 b/0/0" {
				t.Errorf("arrived %s", got)
			}
		})
	}
}
