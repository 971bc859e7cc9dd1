package worker_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agent/llm"
	"parley/agent/worker"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// operatorNotice returns the message that tells a session what an operator has said in its chat.
func operatorNotice(post, chat, words string) bus.Inbound {
	return bus.Inbound{ID: post + "/0#told", Kind: bus.Notice, At: bus.Address{Channel: "test", Chat: chat}, Of: post, Text: "It was not you who said this.",
		Quotes: []bus.Quote{{Kind: bus.Told, From: bus.Person{ID: "web:boss", Name: "boss"}, Text: words, Own: true, Operator: true}}}
}

// wantOperatorMessage reads events until one is a message, which must be an operator's with that id.
func (w *watcher) wantOperatorMessage(id, words string) {
	w.b.t.Helper()
	if e := w.nextMessageEvent(); e.Kind != bus.KindOperator || e.Call != id || e.Delta != words || e.Detail == nil || e.Name != "boss" || e.Turn != "" {
		w.b.t.Errorf("watchers were told %+v, not of %s", e, id)
	}
}

// nextMessageEvent reads events until one is a message, and returns it.
func (w *watcher) nextMessageEvent() bus.Event {
	w.b.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case e := <-w.session:
			if e.Type == bus.Spoken {
				return e
			}
		case <-limit:
			w.b.t.Fatal("watchers were told nothing")
		}
	}
}

func TestWhatAnOperatorSaidIsKnownAndStartsNoTurn(t *testing.T) {
	var told string
	b := newBench(t, recordingModel(&told))
	watched := b.watch()
	b.run()
	b.publish(operatorNotice("m_1", "1", "I have <notice> repaired it"))
	b.settled()
	if got := b.kinds("1"); got != "notice" {
		t.Errorf("the log has %s, want only the notice", got)
	}
	b.wantSilence()
	watched.wantOperatorMessage("m_1", "I have <notice> repaired it")
	b.wantReply(b.say("1", "ann", "thanks"), "ok")
	want := "<notice>\nIt was not you who said this.\n<quote kind=\"said-here-by-operator\" from=\"web:boss\" name=\"boss\">\nI have &lt;notice> repaired it\n</quote>\n</notice>\n\n<message"
	if !strings.HasPrefix(told, want) {
		t.Errorf("the model was told\n%s\nwant\n%s", told, want)
	}
	entry, err := b.store.Find(t.Context(), "main:test:1", "m_1/0#told")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := sessions.Decode[sessions.Notice](entry); err != nil || n.Code != sessions.NoticeOperator || n.MessageID != "m_1" || entry.Person != "web:boss" {
		t.Errorf("%+v of %s, %v", n, entry.Person, err)
	}
}

// A running turn learns what an operator has said before its model is asked again, and its sender's later messages
// still join it.
func TestWhatAnOperatorSaysWhileATurnRuns(t *testing.T) {
	started, goOn := make(chan struct{}), make(chan struct{})
	wait := tools.New(tools.Spec{Name: "wait", Description: "x", Effect: tools.Pure}, func(context.Context, tools.Call, echoArgs) (any, error) {
		close(started)
		<-goOn
		return "waited", nil
	})
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`wait {"say":""}`), nil
		}
		var all strings.Builder
		for _, m := range r.Messages {
			for _, block := range m.Blocks {
				all.WriteString(block.Text)
			}
		}
		operator, more := strings.Contains(all.String(), "leave it to me"), strings.Contains(all.String(), "and more")
		if operator && more {
			return textAnswer("knows both"), nil
		}
		return textAnswer("knows only some"), nil
	}, wait)
	b.agent.Steer = true
	watched := b.watch()
	b.run()
	first := b.say("1", "ann", "repair it")
	<-started
	b.publish(operatorNotice("m_1", "1", "leave it to me"))
	b.say("1", "ann", "and more")
	waitWaiting(t, b, 3)
	close(goOn)
	b.wantReply(first, "knows both")
	watched.wantOperatorMessage("m_1", "leave it to me")
	b.settled()
	b.wantNoneDead()
	if got := strings.Count(b.kinds("1"), "turn_started"); got != 1 {
		t.Errorf("there are %d turns: %s", got, b.kinds("1"))
	}
}

// Wherever the process is killed, the log has an operator's word once, watchers are told, and no turn
// begins.
func TestKilledWhileAnOperatorsWordIsLogged(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"notice:before", "notice", "settled"} {
		runSharedAndSeparate(t, at, func(t *testing.T, dir string) {
			publishInbound(t, dir, operatorNotice("m_1", "1", "one"))
			runKilled(t, dir, at)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			h := openHome(t, dir)
			feed, err := h.bus.Subscribe(ctx, bus.SessionFeed("main:test:1"), 0)
			if err != nil {
				t.Fatal(err)
			}
			running, stop := context.WithCancel(ctx)
			done := make(chan error, 1)
			go func() {
				done <- worker.New(crashConfig(h, crashAgent(filepath.Join(dir, "effects")), nil)).Run(running)
			}()
			if at != "settled" { // then they were told by the one that was killed
				for e, err := range feed {
					if err == nil && e.Type == bus.Spoken && e.Call == "m_1" {
						break
					}
				}
			}
			stop()
			if err := <-done; err != nil || ctx.Err() != nil {
				t.Fatal(err, ctx.Err())
			}
			h.Close()
			runToEnd(t, dir)
			h = openHome(t, dir)
			defer h.Close()
			var kinds []string
			for e, err := range h.store.Read(t.Context(), "main:test:1", 1) {
				if err != nil {
					t.Fatal(err)
				}
				kinds = append(kinds, string(e.Kind))
			}
			if strings.Join(kinds, " ") != "notice" {
				t.Errorf("the log has %v, want one notice and no turn", kinds)
			}
		})
	}
}

// People are told nothing about a notice that is given up, because they have sent nothing that could not be answered.
func TestANoticeIsGivenUpInSilence(t *testing.T) {
	b := newBench(t, neverAsked(t))
	body, err := operatorNotice("m_1", "1", "leave it to me").Encode()
	if err == nil {
		err = b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "m_1/0#told", Key: "main:test:a b", Body: body})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	b.settled()
	b.wantSilence()
	if dead, err := b.bus.DeadLetters(t.Context(), bus.InboundTopic, "", 2); err != nil || len(dead) != 1 {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// Watchers are told what the agent has said in a chat on behalf of a person in another chat, and who that person is,
// once the session's log has it.
func TestWatchersAreToldWhatWasSaidOnBehalfOfOthers(t *testing.T) {
	var told string
	b := newBench(t, recordingModel(&told))
	watched := b.watch()
	b.run()
	for _, id := range []string{"m_1#c1", "m_1#c2"} {
		b.publish(bus.Inbound{ID: bus.ToldID(id), Kind: bus.Notice, At: bus.Address{Channel: "test", Chat: "1"}, Text: "You have told this chat something.",
			Quotes: []bus.Quote{{Kind: bus.Told, From: bus.Person{ID: "telegram:2", Name: "Bob"}, Text: "words of " + id}}})
	}
	b.settled()
	for _, id := range []string{"m_1#c1", "m_1#c2"} {
		e := watched.nextMessageEvent()
		if e.Kind != bus.KindTold || e.Call != id || e.Delta != "words of "+id || e.Detail == nil || e.Name != "Bob (telegram:2)" || e.Turn != "" {
			t.Errorf("watchers were told %+v", e)
		}
	}
	b.wantSilence()
}
