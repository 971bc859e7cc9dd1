package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// pressPrivately returns the press of a button in a person's private chat.
func pressPrivately(id, user, says string) bus.Inbound {
	in := stagetest.PrivateMessage(id, user, says)
	in.Pressed = true
	return in
}

// Owners admit, refuse and remove people by buttons. Presses by others have no effect.
func TestOwnersDecideAboutPeopleWithButtons(t *testing.T) {
	withGateway(t, bus.Caps{}, gateway.Access{}, func(t *testing.T, s *testStage) {
		makeOwner(t, s, "1")
		admitPerson(t, s, "2")
		s.takeOutbound(t)
		s.receive(t, stagetest.PrivateMessage("a", "7", "hello"))
		asked := s.takeOutbound(t)["1"]
		code := requestCode(t, s, "c:7")
		if len(asked) != 1 || len(asked[0].Buttons) != 2 || asked[0].Buttons[0] != (bus.Button{Label: "Admit", Says: "/admit " + code}) ||
			asked[0].Buttons[1].Says != "/refuse "+code {
			t.Fatalf("the owner is asked %+v", asked)
		}
		s.receive(t, pressPrivately("p0", "2", "/admit "+code)) // this person is not an owner
		if requestCode(t, s, "c:7") != code || len(s.takeOutbound(t)) != 0 {
			t.Error("somebody who is no owner has decided")
		}
		for range 2 { // platforms may deliver a press twice
			s.receive(t, pressPrivately("p1", "1", "/admit "+code))
			synctest.Wait()
		}
		told := s.takeOutbound(t)
		if len(told["1"]) != 1 || told["1"][0].Subject != asked[0].Subject || !strings.Contains(told["1"][0].Text, "is admitted by `c:1`") ||
			len(told["1"][0].Buttons) != 1 || told["1"][0].Buttons[0].Says != "/remove c:7" {
			t.Errorf("the owner is told %+v", told["1"])
		}
		if len(told["7"]) != 1 || !strings.Contains(told["7"][0].Text, "can talk to me now") {
			t.Errorf("the person is told %+v", told["7"])
		}
		s.receive(t, stagetest.PrivateMessage("b", "7", "hello again"))
		if mail := s.TakeMail(t); len(mail) != 1 || mail[0].Text != "hello again" {
			t.Errorf("published %+v", mail)
		}
		s.receive(t, pressPrivately("p2", "1", "/remove c:7"))
		if _, admitted, err := s.Book.FindPairing(t.Context(), "c:7"); err != nil || admitted {
			t.Errorf("after it was removed: %v, %v", admitted, err)
		}
		s.receive(t, pressPrivately("p3", "1", "/remove c:1")) // an owner can't be removed
		if p, _, err := s.Book.FindPairing(t.Context(), "c:1"); err != nil || !p.Owner {
			t.Errorf("the owner is %+v, %v", p, err)
		}
		time.Sleep(25 * time.Hour)
		s.takeOutbound(t)
		s.receive(t, stagetest.PrivateMessage("c", "8", "hello"))
		s.receive(t, pressPrivately("p4", "1", "/refuse "+requestCode(t, s, "c:8")))
		if told := s.takeOutbound(t); len(told["8"]) != 0 || !strings.Contains(told["1"][len(told["1"])-1].Text, "was refused") {
			t.Errorf("of a refusal posted %+v", told)
		}
		s.receive(t, pressPrivately("p5", "1", "/admit NOSUCHCODE"))
		if told := s.takeOutbound(t); len(told["1"]) != 1 || !strings.Contains(told["1"][0].Text, "over") {
			t.Errorf("of a code that nobody has, posted %+v", told)
		}
	})
}

// A failingBus refuses to publish messages that are to be sent.
type failingBus struct {
	gateway.Bus
	failing *atomic.Bool
}

func (f failingBus) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	if f.failing.Load() {
		return errors.New("the bus is away")
	}
	return f.Bus.Publish(ctx, topic, m)
}

// If owners can't be told of a decision, a repeated press tells them, and does not say that the request is
// closed. The decision is in the audit once.
func TestADecisionIsReportedOnceTheBusIsBack(t *testing.T) {
	var away atomic.Bool
	var audited []string
	setup := func(s *testStage, g *gateway.Gateway) {
		g.Bus = failingBus{s.Bus, &away}
		g.OnDecided = func(_ context.Context, by, person, result string) {
			audited = append(audited, by+" "+person+" "+result)
		}
	}
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{}, setup, func(t *testing.T, s *testStage) {
		makeOwner(t, s, "1")
		s.takeOutbound(t)
		s.receive(t, stagetest.PrivateMessage("a", "7", "hello"))
		s.takeOutbound(t)
		code := requestCode(t, s, "c:7")
		away.Store(true)
		if err := s.Platform.Say(t.Context(), pressPrivately("p1", "1", "/admit "+code)); err == nil {
			t.Error("the press is taken, and the owner was not told")
		}
		away.Store(false)
		s.receive(t, pressPrivately("p1", "1", "/admit "+code))
		if told := s.takeOutbound(t); len(told["1"]) != 1 || !strings.Contains(told["1"][0].Text, "is admitted by `c:1`") || len(told["7"]) != 1 {
			t.Errorf("told %+v", told)
		}
		if want := []string{"c:1 c:7 admitted"}; !slices.Equal(audited[len(audited)-1:], want) || len(audited) != 2 {
			t.Errorf("audited %q", audited)
		}
	})
}
