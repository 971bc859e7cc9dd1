package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/outgoing"
	"parley/tools"
)

// A failingVoice makes no recording, and fails for a given reason. If that is errNeverEnds, it records until its
// context ends.
type failingVoice struct {
	*diskVoice
	failure  error
	attempts atomic.Int32
	started  chan struct{} // gets a value for each recording that is begun
}

var errNeverEnds = errors.New("it takes for ever")

func (v *failingVoice) Record(ctx context.Context, _ agent.Reading) (bus.FileRef, error) {
	v.attempts.Add(1)
	v.started <- struct{}{}
	if errors.Is(v.failure, errNeverEnds) {
		<-ctx.Done()
		return bus.FileRef{}, ctx.Err()
	}
	return bus.FileRef{}, v.failure
}

// newReadingBench returns a bench whose agent has a voice. Its model says "done" after the call of the tool that marks
// text, if there is one.
func newReadingBench(t *testing.T, why error, uses ...string) (*bench, *failingVoice) {
	t.Helper()
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(uses) > 0 && len(toolResults(r)) == 0 {
			return callsAnswer(uses...), nil
		}
		return textAnswer("done"), nil
	}, echo("say", tools.Pure, func(tools.Call, string) error { return nil }))
	disk, err := newDiskVoice(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &failingVoice{diskVoice: disk, failure: why, started: make(chan struct{}, 10)}
	b.agent.Voice, b.agent.Fetch = v, (&fakeFetcher{}).fetch
	if why == nil {
		b.agent.Voice = disk
	}
	return b, v
}

// spokenMessage returns a voice message.
func spokenMessage(id string) bus.Inbound {
	return messageWithFiles(id, "", bus.Attachment{Kind: bus.Voice, Ref: "1"})
}

// An answer is read aloud if its message was spoken, or if the agent wants that; others are not.
func TestWhichAnswersAreReadAloud(t *testing.T) {
	t.Parallel()
	forwarded := spokenMessage("m1")
	forwarded.Quotes = []bus.Quote{{Kind: bus.Forwarded, Text: "x"}}
	for _, c := range []struct {
		name  string
		say   bus.Inbound
		uses  []string
		aloud bool
	}{
		{"spoken", spokenMessage("m1"), nil, true},
		{"written", messageWithFiles("m1", "hello"), nil, false},
		{"forwarded", forwarded, nil, false},
		{"a reply to what was spoken", messageWithFiles("m1", "what is in this?", bus.Attachment{Kind: bus.Voice, Ref: "1", Quoted: true}), nil, false},
		{"marked", messageWithFiles("m1", "hello"), []string{`say {"say":"aloud"}`}, true},
		{"not marked", messageWithFiles("m1", "hello"), []string{`say {"say":"quietly"}`}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, v := newReadingBench(t, nil, c.uses...)
			b.run()
			b.publish(c.say)
			b.settled()
			out := outboundMail(t, b.bus)
			if want := 1; c.aloud {
				want = 2
				if len(out) != want || len(out[1].Files) != 1 || out[1].Text != "" || v.timesAsked() != 1 {
					t.Errorf("said %+v", out)
				}
			} else if len(out) != want || len(out[0].Files) > 0 || v.timesAsked() != 0 {
				t.Errorf("said %+v", out)
			}
		})
	}
}

// If an answer can't be read aloud, the person still gets the text. The reason is told to the person and the model only
// if reading was asked for.
func TestATextIsSentIfItCannotBeReadAloud(t *testing.T) {
	t.Parallel()
	why := &agent.UnreadError{Code: "refused", Why: "the server refused it", Err: errors.New("HTTP status 403")}
	for _, uses := range [][]string{nil, {`say {"say":"aloud"}`}} {
		b, v := newReadingBench(t, why, uses...)
		b.run()
		b.publish(spokenMessage("m1"))
		b.settled()
		out := outboundMail(t, b.bus)
		log := b.kinds("1")
		told := len(out) == 2 && out[1].ID == "m1#voice" && strings.Contains(out[1].Text, "I couldn't read that aloud: the server refused it.") && strings.HasSuffix(log, "turn_done notice published")
		if v.attempts.Load() != 1 || out[0].Text != "done" || told != (len(uses) > 0) || !told && len(out) != 1 {
			t.Errorf("after %d tries, said %+v, and the log is %s", v.attempts.Load(), out, log)
		}
	}
}

// A recording is within the budget: if little is left, that pays for the answer and not for the recording.
func TestAReadingIsPaidFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		most  int64
		aloud bool
	}{{"enough", 2 * readingPrice, true}, {"too little", readingPrice - 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, v := newReadingBench(t, nil, `say {"say":"aloud"}`)
			b.money, b.limit.UserDay = b.store.Money(), c.most
			b.run()
			b.publish(messageWithFiles("m1", "hello"))
			b.settled()
			out := outboundMail(t, b.bus)
			spent, aside, err := b.store.Money().State(t.Context(), bill.Cap{Subject: bill.Person("test:alex")}, out[0].At)
			if err != nil || aside != 0 {
				t.Errorf("%d are set aside, %v", aside, err)
			}
			if c.aloud && (spent != readingPrice || v.timesAsked() != 1) || !c.aloud && (spent != 0 || v.timesAsked() != 0 || !strings.Contains(out[1].Text, "there isn't enough left in the budget")) {
				t.Errorf("%d are spent, and said %+v", spent, out)
			}
		})
	}
}

// The turn's end only has a mark beside its reply, so a release that doesn't know the mark publishes the text.
func TestTheLogSaysWhichAnswersAreReadAloud(t *testing.T) {
	t.Parallel()
	b, _ := newReadingBench(t, nil)
	b.run()
	b.publish(spokenMessage("m1"))
	b.settled()
	ends := 0
	for e, err := range b.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != sessions.KindTurnDone {
			continue
		}
		ends++
		if done, err := sessions.Decode[sessions.TurnDone](e); err != nil || !done.Aloud || len(done.Outbound) != 1 || len(done.Outbound[0].Files) > 0 {
			t.Errorf("the turn ends with %+v, %v", done, err)
		}
	}
	if ends != 1 {
		t.Errorf("the log has %d ends of turns, want one", ends)
	}
}

// The agent's marked text is read without its secrets.
func TestSecretsAreNotReadAloud(t *testing.T) {
	t.Parallel()
	b, v := newReadingBench(t, nil, `say {"say":"aloud: it is my-secret"}`)
	b.agent.Redact = secretHider{}
	b.run()
	b.publish(messageWithFiles("m1", "hello"))
	b.settled()
	f := outboundMail(t, b.bus)[1].Files[0]
	content, err := v.store.Read(outgoing.File{Ref: f.Ref, SHA256: f.SHA256, Size: f.Size})
	if err != nil || string(content) != "it is ***, take 1" {
		t.Errorf("read %q, %v", content, err)
	}
}

// If several calls mark a text, the last one counts. If its text can't be read completely, nobody is told that the rest
// is in the answer.
func TestTheLastTextIsRead(t *testing.T) {
	t.Parallel()
	b, v := newReadingBench(t, nil, `say {"say":"aloud: one"}`, `say {"say":"aloud: two{ and more"}`)
	b.run()
	b.publish(messageWithFiles("m1", "hello"))
	b.settled()
	out := outboundMail(t, b.bus)
	if len(out) != 2 || len(out[1].Files) != 1 || out[1].Text != "_(This is only the beginning. The rest was too long to be read aloud.)_" {
		t.Fatalf("said %+v", out)
	}
	f := out[1].Files[0]
	content, err := v.store.Read(outgoing.File{Ref: f.Ref, SHA256: f.SHA256, Size: f.Size})
	if err != nil || string(content) != "two, take 1" {
		t.Errorf("read %q, %v", content, err)
	}
}

// A /stop ends a reading. The text is there, and nobody is told that anything went wrong.
func TestAReadingIsStopped(t *testing.T) {
	t.Parallel()
	b, v := newReadingBench(t, errNeverEnds, `say {"say":"aloud"}`)
	b.run()
	b.publish(messageWithFiles("v1", "hello"))
	<-v.started
	asked, said := b.say("1", "alex", "/status"), b.say("1", "alex", "/stop")
	b.settled()
	out := outboundMail(t, b.bus)
	if len(out) != 3 || out[0].ID != "v1#reply" || out[1].ID != bus.ReplyID(asked) || !strings.HasPrefix(out[1].Text, "I'm reading my answer aloud.") || out[2].ID != bus.ReplyID(said) || out[2].Text != "Stopped." {
		t.Errorf("said %+v", out)
	}
}

// A process that stops in an orderly way while it reads doesn't count as one that was killed: the reading is begun again.
func TestAReadingOutlivesStops(t *testing.T) {
	t.Parallel()
	b, v := newReadingBench(t, errNeverEnds)
	b.drain = time.Millisecond
	b.publish(spokenMessage("m1"))
	for range 4 {
		stop := b.run()
		select {
		case <-v.started:
		case <-time.After(20 * time.Second):
			t.Fatal("the reading is given up")
		}
		stop()
	}
	if log := b.kinds("1"); !strings.HasSuffix(log, "turn_done suspended resumed suspended resumed suspended resumed suspended") {
		t.Errorf("the log is %s", log)
	}
}
