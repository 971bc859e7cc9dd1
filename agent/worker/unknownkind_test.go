package worker_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
	"parley/tools/testlog"
)

// publishUnknownKind publishes a message of a kind that a later release may have.
func (b *bench) publishUnknownKind(id string) {
	b.t.Helper()
	b.publish(bus.Inbound{ID: id, Kind: "verdict", From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "a secret"})
}

// waitPostponed waits until the session is postponed with that many messages.
func (b *bench) waitPostponed(waiting int) {
	b.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(time.Millisecond) {
		d, err := b.bus.Depth(b.t.Context(), bus.InboundTopic)
		if err != nil {
			b.t.Fatal(err)
		}
		if d.Delayed == 1 && d.Waiting == waiting && d.Leased == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the session was not put off: %+v", d)
		}
	}
}

// wantLeftAlone waits until the session is postponed with that many messages, and checks that none is a dead letter and
// that the claim was not counted.
func (b *bench) wantLeftAlone(stop func(), waiting int) {
	b.t.Helper()
	b.waitPostponed(waiting)
	b.wantNoneDead()
	stop()
	b.say("1", "ann", "/help") // urgent: it wakes the session
	lease, err := b.bus.Claim(b.t.Context(), bus.InboundTopic)
	if err != nil {
		b.t.Fatal(err)
	}
	if n := lease.Claim().Attempts; n != 1 {
		b.t.Errorf("it is claim %d: that of who left it alone was counted", n)
	}
	mail, err := lease.Mail(b.t.Context(), 0)
	if err != nil || len(mail) != waiting+1 {
		b.t.Errorf("%d messages wait, want %d (%v)", len(mail), waiting+1, err)
	}
}

// wantSilence checks that no message was sent.
func (b *bench) wantSilence() {
	b.t.Helper()
	if d, err := b.bus.Depth(b.t.Context(), bus.OutboundTopic("test")); err != nil || d.Waiting > 0 {
		b.t.Errorf("something was said: %+v, %v", d, err)
	}
}

func neverAsked(t *testing.T) model {
	return func(context.Context, llm.Request) (llm.Answer, error) {
		t.Error("the model was asked")
		return textAnswer("no"), nil
	}
}

func TestMailOfAnUnknownKindIsLeftToANewerRelease(t *testing.T) {
	b := newBench(t, neverAsked(t))
	var log testlog.Buffer
	b.log = slog.NewTextHandler(&log, nil)
	b.say("1", "ann", "before")
	b.publishUnknownKind("x1")
	b.say("1", "ann", "after")
	b.say("1", "ann", "/status")
	stop := b.run()
	b.wantLeftAlone(stop, 4)
	b.wantSilence()
	if all := log.String(); !strings.Contains(all, "id=x1 kind=verdict") || strings.Contains(all, "a secret") {
		t.Errorf("the log says %s", all)
	}
}

func TestMailOfAnUnknownKindInMidTurnEndsTheRun(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		close(started)
		<-goOn
		return textAnswer("answer to " + newestUserText(r)), nil
	})
	stop := b.run()
	first := b.say("1", "ann", "first")
	<-started
	b.say("1", "bob", "before")
	b.publishUnknownKind("x1")
	b.say("1", "ann", "after")
	waitWaiting(t, b, 4)
	close(goOn)
	b.wantReply(first, "answer to first")
	b.waitPostponed(4)
	stop()
	b.wantSilence()
	b.wantNoneDead()
	if got := b.kinds("1"); strings.Count(got, "turn_started") != 1 {
		t.Errorf("more than the turn that ran was begun: %s", got)
	}
}

func TestALogWithAnUnknownKindIsLeftToANewerRelease(t *testing.T) {
	b := newBench(t, neverAsked(t))
	log, err := b.store.Open(t.Context(), "main:test:1", 1)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(kind sessions.Kind, data any) sessions.Entry {
		e, err := sessions.NewEntry("m0", kind, data)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	err = log.Append(t.Context(), 1,
		entry(sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte(`{"at":{"channel":"test","chat":"1"}}`)}),
		entry(sessions.KindUser, sessions.User{Text: "do it"}),
		entry("turn_waits", map[string]string{"for": "a verdict"}))
	if err != nil {
		t.Fatal(err)
	}
	b.say("1", "ann", "is it done?")
	b.useUpClaims()
	stop := b.run()
	b.waitPostponed(1)
	stop()
	b.wantSilence()
	b.wantNoneDead()
	if got := b.kinds("1"); got != "turn_started user turn_waits" {
		t.Errorf("the log has now %s", got)
	}
}

func TestMailWithoutAKindIsBuried(t *testing.T) {
	b := newBench(t, neverAsked(t))
	if err := b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "x1", Key: "main:test:1", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	b.run()
	b.settled()
	if dead, err := b.bus.DeadLetters(t.Context(), bus.InboundTopic, "", 2); err != nil || len(dead) != 1 {
		t.Errorf("dead letters %v, %v", dead, err)
	}
}
