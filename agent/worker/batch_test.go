package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/llm"
	"parley/bus"
)

// sayPiece publishes a message of ann's; more says that others follow it.
func (b *bench) sayPiece(id, said string, more bool) {
	b.t.Helper()
	b.publish(bus.Inbound{ID: id, Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: said, More: more, ReplyTo: "at-" + id, Group: true})
}

// countingModel returns a model that repeats the user's text, and counts how often it is asked.
func countingModel(asked *int) model {
	return func(_ context.Context, r llm.Request) (llm.Answer, error) {
		*asked++
		return textAnswer("answer to " + newestUserText(r)), nil
	}
}

// turnCauses returns which messages each turn of the session answers, in order.
func (b *bench) turnCauses(chat string) string {
	b.t.Helper()
	var turns []string
	for e, err := range b.store.Read(b.t.Context(), "main:test:"+chat, 1) {
		switch {
		case err != nil:
			b.t.Fatal(err)
		case e.Kind == "turn_started":
			turns = append(turns, e.Turn+":")
		case e.Kind == "user":
			turns[len(turns)-1] += " " + e.Cause
		}
	}
	return strings.Join(turns, "; ")
}

func (b *bench) wantCauses(want string) {
	b.t.Helper()
	if got := b.turnCauses("1"); got != want {
		b.t.Errorf("turns and what they answer: %q, want %q", got, want)
	}
}

// A turn waits for more pieces until none has come for half a second, and for two seconds at most.
func TestPiecesAreOneTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		gaps []time.Duration // before each piece but the first
		last bool            // the last piece announces no more
		want string
		took time.Duration
	}{
		"an album":         {[]time.Duration{100 * time.Millisecond, 400 * time.Millisecond}, false, "p0: p0 p1 p2", time.Second},
		"a text in parts":  {[]time.Duration{100 * time.Millisecond, 100 * time.Millisecond}, true, "p0: p0 p1 p2", 200 * time.Millisecond},
		"a late piece":     {[]time.Duration{600 * time.Millisecond}, true, "p0: p0; p1: p1", 500 * time.Millisecond},
		"pieces for ever":  {slices.Repeat([]time.Duration{450 * time.Millisecond}, 4), false, "p0: p0 p1 p2 p3 p4", 2 * time.Second},
		"the end is alone": {nil, false, "p0: p0", 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var first time.Duration
				began := time.Now()
				b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
					if first == 0 {
						first = time.Since(began)
					}
					return textAnswer("answer to " + newestUserText(r)), nil
				})
				b.run()
				b.sayPiece("p0", "0", len(tc.gaps) > 0 || !tc.last)
				for i, gap := range tc.gaps {
					time.Sleep(gap)
					b.sayPiece(fmt.Sprint("p", i+1), fmt.Sprint(i+1), i+1 < len(tc.gaps) || !tc.last)
				}
				time.Sleep(5 * time.Second)
				synctest.Wait()
				b.wantCauses(tc.want)
				if first.Round(10*time.Millisecond) != tc.took {
					t.Errorf("the model was asked after %v, want %v", first, tc.took)
				}
			})
		})
	}
}

// blockedModel returns a model whose first answer waits until goOn is closed.
func blockedModel(asked *int, started, goOn chan struct{}) model {
	repeat := countingModel(asked)
	return func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		if newestUserText(r) == "first" {
			close(started)
			<-goOn
		}
		return repeat(ctx, r)
	}
}

// Messages that the same person sends during a turn become the next turn, whichever way the queue is kept. Another
// person's message becomes a turn of its own.
func TestMessagesThatWaitBehindATurnAreOneTurn(t *testing.T) {
	for _, steer := range []bool{true, false} {
		t.Run(fmt.Sprint("steer ", steer), func(t *testing.T) {
			started, goOn, asked := make(chan struct{}), make(chan struct{}), 0
			b := newBench(t, blockedModel(&asked, started, goOn))
			b.agent.Steer, b.limit.TurnsHour = steer, 3
			feed, err := b.bus.Subscribe(t.Context(), bus.SessionFeed("main:test:1"), 0)
			if err != nil {
				t.Fatal(err)
			}
			b.run()
			b.sayPiece("p0", "first", false)
			<-started
			for _, n := range []string{"1", "2", "3"} {
				b.sayPiece("p"+n, n, false)
			}
			b.say("1", "bob", "mine")
			b.sayPiece("p5", "5", false)
			waitWaiting(t, b, 6)
			close(goOn)
			for _, want := range []struct{ id, text, quotes string }{
				{"p0#reply", "answer to first", "at-p0"}, {"p1#reply", "answer to 1|2|3", "at-p3"}, {"m1#reply", "answer to mine", ""}, {"p5#reply", "answer to 5", "at-p5"},
			} {
				if out := b.reply(); out.ID != want.id || out.Text != want.text || out.ReplyTo != want.quotes || len(out.Causes) != map[string]int{"p1#reply": 3}[out.ID] {
					t.Errorf("%+v, want %v", out, want)
				}
			}
			b.settled()
			b.wantCauses("p0: p0; p1: p1 p2 p3; m1: m1; p5: p5")
			if asked != 4 {
				t.Errorf("the model was asked %d times, want 4", asked)
			}
			var told []string
			for e, err := range feed {
				if err != nil {
					t.Fatal(err)
				}
				if e.Turn == "p1" && len(e.Causes) > 0 {
					told = append(told, e.Type+" "+strings.Join(e.Causes, " "))
				}
				if e.Type == bus.TurnComplete && e.Turn == "p5" {
					break
				}
			}
			if want := []string{"turn_start p1 p2 p3", "turn_complete p1 p2 p3"}; !slices.Equal(told, want) {
				t.Errorf("watchers were told %q, want %q", told, want)
			}
			// Three turns of ann's within the hour were allowed, and there were no more.
			b.sayPiece("p6", "6", false)
			if out := b.reply(); !out.Failed || !strings.Contains(out.Text, "3 times in the past hour") {
				t.Errorf("the fourth turn: %+v", out)
			}
		})
	}
}

func TestStopWhilePiecesAreWaitedFor(t *testing.T) {
	asked := 0
	b := newBench(t, countingModel(&asked))
	b.run()
	b.sayPiece("p0", "one", true)
	b.sayPiece("p1", "two", true)
	b.wantReply(b.say("1", "ann", "/stop"), "Stopped.")
	b.settled()
	b.wantCauses("p0: p0 p1")
	b.wantReply(b.say("1", "ann", "three"), "three")
	if asked != 1 {
		t.Errorf("the model was asked %d times, want once", asked)
	}
}

// Messages before a /stop are stopped, and those after it are answered.
func TestStopBetweenWhatOnePersonSays(t *testing.T) {
	asked := 0
	b := newBench(t, countingModel(&asked))
	b.sayPiece("p0", "zero", false)
	b.sayPiece("p1", "one", true)
	stop := b.say("1", "ann", "/stop")
	b.sayPiece("p2", "two", false)
	b.run()
	b.wantReply(stop, "Stopped.")
	if out := b.reply(); out.ID != "p2#reply" || !strings.HasSuffix(out.Text, "two") {
		t.Errorf("%+v", out)
	}
	b.settled()
	b.wantCauses("p0: p0 p1; p2: p2")
	if asked != 1 {
		t.Errorf("the model was asked %d times, want once", asked)
	}
}

// A worker that ends while it waits for pieces leaves them to the next.
func TestPiecesOutliveTheirWorker(t *testing.T) {
	asked := 0
	b := newBench(t, countingModel(&asked))
	stop := b.run()
	b.sayPiece("p0", "one", true)
	waitWaiting(t, b, 1)
	stop()
	b.sayPiece("p1", "two", false)
	b.run()
	b.wantReply("p0", "answer to one|two")
	b.settled()
	b.wantCauses("p0: p0 p1")
}

// Each message of a turn is known by its own id, also below a summary.
func TestAnyMessageOfATurnMayComeAgain(t *testing.T) {
	asked := 0
	b := newBench(t, countingModel(&asked))
	b.sayPiece("p0", "zero", false)
	b.sayPiece("p1", "one", false)
	stop := b.run()
	b.wantReply("p0", "answer to zero|one")
	b.settled()
	again := func(id string) {
		t.Helper()
		body, err := bus.Inbound{ID: id, Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "again", Group: true}.Encode()
		if err == nil {
			err = b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "again-" + id, Key: "main:test:1", Body: body})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again("p1")
	b.settled()
	b.wantReply(b.say("1", "ann", "/new"), "new conversation")
	b.settled()
	stop()
	again("p1")
	b.sayPiece("p2", "two", false)
	again("p0")
	b.sayPiece("p3", "three", false)
	b.run()
	b.wantReply("p2", "answer to two")
	b.wantReply("p3", "answer to three")
	b.settled()
	b.wantCauses("p0: p0 p1; p2: p2; p3: p3")
	if asked != 3 {
		t.Errorf("the model was asked %d times, want 3", asked)
	}
}

func TestNewInMidTurnIsAnsweredAtOnce(t *testing.T) {
	started, goOn, asked := make(chan struct{}), make(chan struct{}), 0
	b := newBench(t, blockedModel(&asked, started, goOn))
	b.run()
	first := b.say("1", "ann", "first")
	<-started
	id := b.say("1", "ann", "/new")
	if out := b.reply(); out.ID != "noted:"+id || !strings.Contains(out.Text, "I'm working on first") {
		t.Errorf("in mid-turn /new is told %+v", out)
	}
	close(goOn)
	b.wantReply(first, "answer to first")
	b.wantReply(id, "I've started a new conversation.")
	b.wantReply(b.say("1", "ann", "second"), "answer to second")
	b.wantReply(b.say("1", "ann", "/new"), "I've started a new conversation.")
	b.wantSilence()
}

// If a /new that was carried out arrives again, its sender is not told that it waits for the turn that runs now.
func TestNewThatIsDoneIsNotSaidToWait(t *testing.T) {
	started, goOn, asked := make(chan struct{}), make(chan struct{}), 0
	b := newBench(t, blockedModel(&asked, started, goOn))
	stop := b.run()
	id := b.say("1", "ann", "/new")
	b.wantReply(id, "I've started a new conversation.")
	first := b.say("1", "ann", "first")
	<-started
	body, err := bus.Inbound{ID: id, Kind: bus.Command, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "new"}.Encode()
	if err == nil {
		err = b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "again-" + id, Key: "main:test:1", Body: body})
	}
	if err != nil {
		t.Fatal(err)
	}
	second := b.say("1", "ann", "/help") // carried out beside the turn, after what came again
	if out := b.reply(); out.ID != second+"#reply" {
		t.Errorf("told %+v", out)
	}
	close(goOn)
	b.wantReply(first, "answer to first")
	b.settled()
	stop()
}

// A person who says stop to others in a group is not told that nothing runs.
func TestStopThatWasMeantForNobodyIsSilent(t *testing.T) {
	started, goOn, asked := make(chan struct{}), make(chan struct{}), 0
	b := newBench(t, blockedModel(&asked, started, goOn))
	b.run()
	stop := func(id string, mentioned bool) {
		b.publish(bus.Inbound{ID: id, Kind: bus.Command, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "stop", Group: true, Mentioned: mentioned})
	}
	stop("s1", false)
	b.settled()
	b.wantSilence()
	stop("s2", true)
	b.wantReply("s2", "Nothing is running.")
	b.sayPiece("p0", "first", false)
	<-started
	stop("s3", false)
	b.wantReply("s3", "Stopped.")
	close(goOn)
	b.settled()
	b.wantSilence()
}

// A reply that no bus will ever accept is not tried forever, and delays nobody.
func TestAnUnsendableReplyIsBuried(t *testing.T) {
	dead := func(t *testing.T, b *bench, want ...string) {
		t.Helper()
		letters, err := b.bus.DeadLetters(t.Context(), bus.InboundTopic, "", 10)
		var ids []string
		for _, l := range letters {
			ids = append(ids, l.Message.ID)
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("dead letters %.80q, %v, want %.80q", ids, err, want)
		}
	}
	t.Run("an address", func(t *testing.T) {
		asked := 0
		b := newBench(t, countingModel(&asked))
		for _, id := range []string{"p0", "p1"} {
			in := bus.Inbound{ID: id, Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "a\x00b"}, Text: "hello"}
			body, err := in.Encode()
			if err == nil {
				err = b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: id, Key: "main:test:1", Body: body})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		b.run()
		b.wantReply(b.say("1", "bob", "hello"), "hello")
		b.settled()
		dead(t, b, "p0", "p1")
		if asked != 2 {
			t.Errorf("the model was asked %d times, want twice", asked)
		}
	})
	t.Run("an id", func(t *testing.T) {
		asked := 0
		b := newBench(t, countingModel(&asked))
		long := strings.Repeat("x", bus.MaxID)
		b.sayPiece(long, "hello", false)
		b.run()
		if out := b.reply(); !strings.HasPrefix(out.ID, "unsent:") || !strings.Contains(out.Text, "I can't send") {
			t.Errorf("the sender was told %+v", out)
		}
		b.wantReply(b.say("1", "ann", "/help"), "starts a new conversation")
		b.settled()
		dead(t, b, long)
	})
	t.Run("a session", func(t *testing.T) {
		b := newBench(t, neverAsked(t))
		in := bus.Inbound{ID: "p0", Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "hello"}
		body, err := in.Encode()
		if err == nil {
			err = b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "p0", Key: "main:test:a b", Body: body})
		}
		if err != nil {
			t.Fatal(err)
		}
		b.run()
		if out := b.reply(); out.ID != "p0#failed" || !strings.Contains(out.Text, "can't store a conversation") {
			t.Errorf("the sender was told %+v", out)
		}
		b.settled()
		dead(t, b, "p0")
	})
}
