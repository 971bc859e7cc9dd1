package worker_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/llm"
	"parley/agent/worker"
	"parley/bus"
	"parley/channels/asks"
	"parley/channels/sqlbook"
	"parley/sessions"
	"parley/tools"
)

// askingAgent returns an agent that asks a person to approve the call once, and asks a question at the same time.
func askingAgent(made agent.Agent) agent.Agent {
	set := []tools.Tool{askPeople()}
	for _, name := range []string{"pure", "once"} {
		tool, _ := made.Tools.Lookup(name)
		set = append(set, tool)
	}
	made.Tools = tools.NewSet(set...)
	made.Guard = func(_ context.Context, call tools.Call) tools.Verdict {
		if call.Name == "once" {
			return tools.Verdict{Decision: tools.Ask}
		}
		return tools.Verdict{}
	}
	made.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) == 0 {
			return callsAnswer(`once {"say":"1"}`, `pure {"say":"2"}`, `ask {"question":"Which?"}`), nil
		}
		return textAnswer("done: " + strings.Join(toolResults(r), "") + "; " + newestUserText(r)), nil
	})
	return made
}

func askingWorker(h *crashHome, book *sqlbook.Book, made agent.Agent, point func(string)) *worker.Worker {
	return worker.New(agent.Config{
		Bus: h.bus, Events: h.bus, Store: h.store, Budget: h.store,
		Agents:      func(context.Context, string) (agent.Agent, error) { return made, nil },
		Limits:      func() agent.Limits { return agent.Limits{Turns: 3, TurnsHour: 100, TokensDay: 1e6} },
		Asks:        &asks.Service{Bus: h.bus, Book: book, Log: slog.New(slog.DiscardHandler)},
		MaxInFlight: 64, Drain: time.Second, Log: slog.New(slog.DiscardHandler), Point: point,
	})
}

// answerBoth has the owner approve the call, and Ann answer the question with her next message. It publishes both under
// fixed ids.
func answerBoth(t *testing.T, dir string) {
	t.Helper()
	h := openHome(t, dir)
	book, err := h.openBook(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open, err := book.OpenAsks(t.Context())
	if err != nil || len(open) != 2 {
		t.Fatalf("open are %+v, %v", open, err)
	}
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	h.Close()
	for _, a := range open {
		if a.Kind == bus.AskQuestion {
			publishSaid(t, dir, "m2", "1", "red")
			continue
		}
		h := openHome(t, dir)
		body, err := bus.Inbound{ID: "ok", Kind: bus.Command, From: owner, At: bus.Address{Channel: "test", Chat: "9"}, Text: "approve", Args: a.ID}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := h.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "ok", Key: "main:test:9", Urgent: true, Body: body}); err != nil {
			t.Fatal(err)
		}
		h.Close()
	}
}

// The process is killed once at each line by which a turn begins to wait and continues. People are asked once, the call
// runs once, and there is one reply.
func TestKilledWhilePeopleAreAsked(t *testing.T) {
	t.Parallel()
	before := []string{"park:before", "park", "park:opened", "park:opened/2", "park:asked", "park:asked/2", "park:published", "settled"}
	after := []string{"ask:shown", "ask:shown/2", "unpark:before", "unpark:before/2", "unpark", "unpark/2", "c4:before", "c4", "c4:held", "c5:before", "c5", "c6", "c7", "settled/1", "settled/2"}
	for i, at := range append(before, after...) {
		runSharedAndSeparate(t, at+map[bool]string{true: " asking", false: " going on"}[i < len(before)], func(t *testing.T, dir string) {
			kill := func() { runKilled(t, dir, at, askingPeople) }
			through := func() { runToEnd(t, dir, askingPeople) }
			publishFirstMessage(t, dir)
			if i < len(before) {
				kill()
			}
			through()
			answerBoth(t, dir)
			if i >= len(before) {
				kill()
			}
			through()
			checkAsked(t, dir, at)
		})
	}
}

func checkAsked(t *testing.T, dir, at string) {
	t.Helper()
	h := openHome(t, dir)
	said := map[string]int{}
	reply := ""
	for range 2 { // of the conversation, and of the owner's own chat
		for _, out := range outboundMail(t, h.bus) {
			said[out.ID]++
			if out.ID == "m1#reply" {
				reply = out.Text
			}
		}
	}
	if len(said) != 6 { // two requests, what came of them, the owner is told, the reply
		t.Errorf("said %v", said)
	}
	for id, n := range said {
		if n != 1 {
			t.Errorf("%s was said %d times", id, n)
		}
	}
	ran, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	cut := at == "c4" || at == "c4:held" || at == "c5:before" // then nobody knows
	if at == "settled/1" {                                    // the owner's own chat is settled while the call begins, runs or has run
		cut = strings.Contains(reply, "OUTCOME UNKNOWN")
	}
	if n := strings.Count(string(ran), "once "); n != 1 && !cut || n > 1 {
		t.Errorf("it ran %d times", n)
	}
	if !strings.Contains(reply, `{"answer":"red"}`) || cut != strings.Contains(reply, "OUTCOME UNKNOWN") || !strings.Contains(reply, `{"said":"2"}`) {
		t.Errorf("the reply is %q", reply)
	}
	kinds := map[sessions.Kind]int{}
	for e, err := range h.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind]++
	}
	if kinds[sessions.KindTurnParked] != 1 || kinds[sessions.KindAskEnded] != 2 || kinds[sessions.KindTurnUnparked] != 1 || kinds[sessions.KindTurnDone] != 1 || kinds[sessions.KindToolResult] != 3 {
		t.Errorf("the log has %v", kinds)
	}
}
