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

// A strainedVoice makes no recording, for a reason. If that is errEndless, it makes one until it is told to end.
type strainedVoice struct {
	*diskVoice
	why   error
	tries atomic.Int32
	reads chan struct{} // gets a value for each recording that is begun
}

var errEndless = errors.New("it takes for ever")

func (v *strainedVoice) Record(ctx context.Context, _ agent.Reading) (bus.FileRef, error) {
	v.tries.Add(1)
	v.reads <- struct{}{}
	if errors.Is(v.why, errEndless) {
		<-ctx.Done()
		return bus.FileRef{}, ctx.Err()
	}
	return bus.FileRef{}, v.why
}

// readBench is a bench whose agent has a voice, and says "done" after the call of a tool that asks for it, if there is one.
func readBench(t *testing.T, why error, uses ...string) (*bench, *strainedVoice) {
	t.Helper()
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(uses) > 0 && len(results(r)) == 0 {
			return calls(uses...), nil
		}
		return text("done"), nil
	}, echo("say", tools.Pure, func(tools.Call, string) error { return nil }))
	disk, err := newDiskVoice(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &strainedVoice{diskVoice: disk, why: why, reads: make(chan struct{}, 10)}
	b.agent.Voice, b.agent.Fetch = v, (&shelf{}).fetch
	if why == nil {
		b.agent.Voice = disk
	}
	return b, v
}

// heardAs is a message that was spoken.
func heardAs(id string) bus.Inbound {
	return withFiles(id, "", bus.Attachment{Kind: bus.Voice, Ref: "1"})
}

// An answer is read aloud if its message was spoken, or if the agent wants that; others are not.
func TestWhichAnswersAreReadAloud(t *testing.T) {
	t.Parallel()
	forwarded := heardAs("m1")
	forwarded.Quotes = []bus.Quote{{Kind: bus.Forwarded, Text: "x"}}
	for _, c := range []struct {
		name  string
		say   bus.Inbound
		uses  []string
		aloud bool
	}{
		{"spoken", heardAs("m1"), nil, true},
		{"written", withFiles("m1", "hello"), nil, false},
		{"forwarded", forwarded, nil, false},
		{"a reply to what was spoken", withFiles("m1", "what is in this?", bus.Attachment{Kind: bus.Voice, Ref: "1", Quoted: true}), nil, false},
		{"marked", withFiles("m1", "hello"), []string{`say {"say":"aloud"}`}, true},
		{"not marked", withFiles("m1", "hello"), []string{`say {"say":"quietly"}`}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, v := readBench(t, nil, c.uses...)
			b.run()
			b.publish(c.say)
			b.settled()
			out := outbound(t, b.bus)
			if want := 1; c.aloud {
				want = 2
				if len(out) != want || len(out[1].Files) != 1 || out[1].Text != "" || v.asked() != 1 {
					t.Errorf("said %+v", out)
				}
			} else if len(out) != want || len(out[0].Files) > 0 || v.asked() != 0 {
				t.Errorf("said %+v", out)
			}
		})
	}
}

// What can't be read aloud costs nobody the text. Who asked for it is told why, and so is the model; whoever only spoke isn't.
func TestWhatCannotBeReadAloudIsWritten(t *testing.T) {
	t.Parallel()
	why := &agent.UnreadError{Code: "refused", Why: "the server refused it", Err: errors.New("HTTP status 403")}
	for _, uses := range [][]string{nil, {`say {"say":"aloud"}`}} {
		b, v := readBench(t, why, uses...)
		b.run()
		b.publish(heardAs("m1"))
		b.settled()
		out := outbound(t, b.bus)
		log := b.kinds("1")
		told := len(out) == 2 && out[1].ID == "m1#voice" && strings.Contains(out[1].Text, "I couldn't read that aloud: the server refused it.") && strings.HasSuffix(log, "turn_done notice published")
		if v.tries.Load() != 1 || out[0].Text != "done" || told != (len(uses) > 0) || !told && len(out) != 1 {
			t.Errorf("after %d tries, said %+v, and the log is %s", v.tries.Load(), out, log)
		}
	}
}

// A reading is within the budget: what has too little left pays for the answer, and not for the recording.
func TestAReadingIsPaidFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		most  int64
		aloud bool
	}{{"enough", 2 * readingPrice, true}, {"too little", readingPrice - 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, v := readBench(t, nil, `say {"say":"aloud"}`)
			b.money, b.limit.UserDay = b.store.Money(), c.most
			b.run()
			b.publish(withFiles("m1", "hello"))
			b.settled()
			out := outbound(t, b.bus)
			spent, aside, err := b.store.Money().State(t.Context(), bill.Cap{Subject: bill.Person("test:alex")}, out[0].At)
			if err != nil || aside != 0 {
				t.Errorf("%d are set aside, %v", aside, err)
			}
			if c.aloud && (spent != readingPrice || v.asked() != 1) || !c.aloud && (spent != 0 || v.asked() != 0 || !strings.Contains(out[1].Text, "there isn't enough left in the budget")) {
				t.Errorf("%d are spent, and said %+v", spent, out)
			}
		})
	}
}

// The end of a turn only has a mark beside its reply, so a release that doesn't know it publishes the text.
func TestAloudIsInTheLog(t *testing.T) {
	t.Parallel()
	b, _ := readBench(t, nil)
	b.run()
	b.publish(heardAs("m1"))
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

// What the agent wants to have read is read without secrets.
func TestSecretsAreNotReadAloud(t *testing.T) {
	t.Parallel()
	b, v := readBench(t, nil, `say {"say":"aloud: it is my-secret"}`)
	b.agent.Redact = hide{}
	b.run()
	b.publish(withFiles("m1", "hello"))
	b.settled()
	f := outbound(t, b.bus)[1].Files[0]
	content, err := v.store.Read(outgoing.File{Ref: f.Ref, SHA256: f.SHA256, Size: f.Size})
	if err != nil || string(content) != "it is ***, take 1" {
		t.Errorf("read %q, %v", content, err)
	}
}

// The last call that wants something read counts. If it gave a text that can't be read as a whole, nobody is told that the rest
// is in the answer.
func TestTheLastTextIsRead(t *testing.T) {
	t.Parallel()
	b, v := readBench(t, nil, `say {"say":"aloud: one"}`, `say {"say":"aloud: two{ and more"}`)
	b.run()
	b.publish(withFiles("m1", "hello"))
	b.settled()
	out := outbound(t, b.bus)
	if len(out) != 2 || len(out[1].Files) != 1 || out[1].Text != "_(This is only the beginning. The rest was too long to be read aloud.)_" {
		t.Fatalf("said %+v", out)
	}
	f := out[1].Files[0]
	content, err := v.store.Read(outgoing.File{Ref: f.Ref, SHA256: f.SHA256, Size: f.Size})
	if err != nil || string(content) != "two, take 1" {
		t.Errorf("read %q, %v", content, err)
	}
}

// Whoever doesn't want to hear an answer stops it. The text is there, and nobody is told that anything went wrong.
func TestAReadingIsStopped(t *testing.T) {
	t.Parallel()
	b, v := readBench(t, errEndless, `say {"say":"aloud"}`)
	b.run()
	b.publish(withFiles("v1", "hello"))
	<-v.reads
	asked, said := b.say("1", "alex", "/status"), b.say("1", "alex", "/stop")
	b.settled()
	out := outbound(t, b.bus)
	if len(out) != 3 || out[0].ID != "v1#reply" || out[1].ID != bus.ReplyID(asked) || !strings.HasPrefix(out[1].Text, "I'm reading my answer aloud.") || out[2].ID != bus.ReplyID(said) || out[2].Text != "Stopped." {
		t.Errorf("said %+v", out)
	}
}

// A process that stops in an orderly way while it reads doesn't count as one that was killed: the reading is begun again.
func TestAReadingOutlivesStops(t *testing.T) {
	t.Parallel()
	b, v := readBench(t, errEndless)
	b.drain = time.Millisecond
	b.publish(heardAs("m1"))
	for range 4 {
		stop := b.run()
		select {
		case <-v.reads:
		case <-time.After(20 * time.Second):
			t.Fatal("the reading is given up")
		}
		stop()
	}
	if log := b.kinds("1"); !strings.HasSuffix(log, "turn_done suspended resumed suspended resumed suspended resumed suspended") {
		t.Errorf("the log is %s", log)
	}
}
