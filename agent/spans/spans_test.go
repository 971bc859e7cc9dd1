package spans_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/journal"
	"parley/agent/route"
	"parley/agent/spans"
	"parley/agent/turn"
	"parley/bus"
	"parley/bus/trace"
	"parley/sessions"
	"parley/sessions/subagents"
	"parley/tools"
)

const (
	id      = "telegram:1:2"
	session = "main:telegram:1"
)

// began returns when the first entry was written; each further one came a second later.
func began() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

// A turnLog is the log of a turn.
type turnLog struct {
	t       *testing.T
	records []journal.Record
}

func (s *turnLog) add(kind sessions.Kind, call string, data any) {
	s.t.Helper()
	e, err := sessions.NewEntry(id, kind, data)
	if err != nil {
		s.t.Fatal(err)
	}
	e.N, e.Call, e.At = int64(len(s.records)+1), call, began().Add(time.Duration(len(s.records))*time.Second)
	switch d := data.(type) {
	case sessions.User:
		e.Cause = id
	case sessions.AskEnded:
		e.Cause = d.Ask
	}
	r, err := journal.Decode(e)
	if err != nil {
		s.t.Fatal(err)
	}
	s.records = append(s.records, r)
}

// shoutTool returns a set with one tool.
func shoutTool() *tools.Set {
	return tools.NewSet(tools.New(tools.Spec{Name: "shout", Effect: tools.Once}, func(_ context.Context, _ tools.Call, _ struct{}) (any, error) { return nil, nil }))
}

// oneWordRedactor removes one word.
type oneWordRedactor struct{ agent.Redactor }

func (oneWordRedactor) Text(text string) string { return strings.ReplaceAll(text, "secret", "***") }
func (r oneWordRedactor) JSON(raw json.RawMessage) json.RawMessage {
	return json.RawMessage(r.Text(string(raw)))
}

// fullTurn returns the log of a turn in which a call was approved, another one failed, a task was handed out, and the
// process changed.
func fullTurn(t *testing.T) *turnLog {
	s := &turnLog{t: t}
	received := began().Add(-3 * time.Second)
	s.add(sessions.KindTurnStarted, "", sessions.TurnStarted{Route: route.Route{At: bus.Address{Channel: "telegram", Chat: "1"}, Received: received}.Encode(), Agent: "main"}) // 1
	s.add(sessions.KindUser, "", sessions.User{Name: "Quince", Text: "shout the secret"})                                                                                      // 2
	s.add(sessions.KindText, "", sessions.Text{Text: "well"})                                                                                                                  // 3
	s.add(sessions.KindToolUse, "c1", sessions.ToolUse{Name: "shout", Args: json.RawMessage(`{"a":"secret"}`)})                                                                // 4
	s.add(sessions.KindToolUse, "c2", sessions.ToolUse{Name: "made_up", Args: json.RawMessage(`"x`[:1] + `"`)})                                                                // 5
	s.add(sessions.KindUsage, "", sessions.Usage{Model: "small", Input: 10, Cached: 4, Output: 2})                                                                             // 6
	s.add(sessions.KindToolResult, "c2", sessions.ToolResult{Content: json.RawMessage(`{}`), Code: "not_found"})                                                               // 7
	s.add(sessions.KindTurnParked, "", sessions.TurnParked{Asks: []sessions.Ask{{ID: "ask1", Call: "c1", Kind: bus.AskApproval}}})                                             // 8
	s.add(sessions.KindPublished, "", nil)                                                                                                                                     // 9
	s.add(sessions.KindAskEnded, "c1", sessions.AskEnded{Ask: "ask1", State: bus.AskAnswered})                                                                                 // 10
	s.add(sessions.KindTurnUnparked, "", nil)                                                                                                                                  // 11
	s.add(sessions.KindToolStarted, "c1", sessions.ToolStarted{Attempt: 1})                                                                                                    // 12
	s.add(sessions.KindResumed, "", nil)                                                                                                                                       // 13
	s.add(sessions.KindToolStarted, "c1", sessions.ToolStarted{Attempt: 2})                                                                                                    // 14
	s.add(sessions.KindToolResult, "c1", sessions.ToolResult{Content: json.RawMessage(`{"b":"secret"}`)})                                                                      // 15
	s.add(sessions.KindToolUse, "c3", sessions.ToolUse{Name: "shout", Args: json.RawMessage(`{}`)})                                                                            // 16
	s.add(sessions.KindUsage, "", sessions.Usage{Model: "small"})                                                                                                              // 17
	s.add(sessions.KindDelegated, "c3", sessions.Delegated{ID: "t1"})                                                                                                          // 18
	s.add(sessions.KindTurnParked, "", sessions.TurnParked{Asks: []sessions.Ask{{ID: "task:t1", Call: "c3", Kind: sessions.AskTask}}})                                         // 19
	s.add(sessions.KindPublished, "", nil)                                                                                                                                     // 20
	s.add(sessions.KindAskEnded, "c3", sessions.AskEnded{Ask: "task:t1", State: bus.AskAnswered})                                                                              // 21
	s.add(sessions.KindToolResult, "c3", sessions.ToolResult{Content: json.RawMessage(`{}`)})                                                                                  // 22
	s.add(sessions.KindTurnUnparked, "", nil)                                                                                                                                  // 23
	s.add(sessions.KindText, "", sessions.Text{Text: "done"})                                                                                                                  // 24
	s.add(sessions.KindUsage, "", sessions.Usage{Model: "small"})                                                                                                              // 25
	s.add(sessions.KindTurnDone, "", sessions.TurnDone{State: sessions.TurnFailed, Code: "timeout", Outbound: []sessions.Reply{{ID: id + "#reply", Text: "no secret"}}})       // 26
	return s
}

// upTo returns the turn and its records when the log had n entries.
func (s *turnLog) upTo(n int) (*turn.Turn, []journal.Record) {
	s.t.Helper()
	t, err := turn.Fold(id, s.records[:n], nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return t, s.records[:n]
}

// spanLine returns the fields of a span that tests compare; times are in seconds after the first entry.
func spanLine(s trace.Span) string {
	var facts strings.Builder
	for _, a := range s.Attributes {
		facts.WriteString(" " + a.Key + "=" + a.Text)
		if a.IsNumber {
			facts.WriteString(fmt.Sprint(a.Number))
		}
	}
	return fmt.Sprintf("%s %v-%v %s%s", s.Name, s.Start.Sub(began()).Seconds(), s.End.Sub(began()).Seconds(), s.Failed, facts.String())
}

func TestTheSpansOfATurn(t *testing.T) {
	s := fullTurn(t)
	a := &agent.Agent{Name: "main", Tools: shoutTool(), Redact: oneWordRedactor{}}
	of, records := s.upTo(len(s.records))
	all := spans.Of(a, session, of, records, 0, trace.Spans)
	var got []string
	for _, one := range all {
		got = append(got, spanLine(one))
		if one.Trace != trace.Of(id) || one.Kind == 0 || one.ID == (trace.SpanID{}) {
			t.Errorf("%+v is in no trace", one)
		}
	}
	const model = " gen_ai.operation.name=chat gen_ai.request.model=small gen_ai.usage.input_tokens="
	const call = " gen_ai.operation.name=execute_tool gen_ai.tool.name="
	want := []string{
		"wait in the mailbox -3-0 ",
		"chat small 1-5 " + model + "10 gen_ai.usage.output_tokens=2 gen_ai.usage.cache_read.input_tokens=4",
		"tool other 4-6 not_found" + call + "other gen_ai.tool.call.id=c2 parley.effect= parley.attempts=0",
		"wait for a person 7-9  parley.ask=ask1 parley.ask.kind=approval parley.ask.state=answered",
		"tool shout 7-14 " + call + "shout gen_ai.tool.call.id=c1 parley.effect=once parley.attempts=2",
		"step 1-14 ",
		"chat small 14-16 " + model + "0 gen_ai.usage.output_tokens=0 gen_ai.usage.cache_read.input_tokens=0",
		"wait for a sub-agent 18-20  parley.ask=task:t1 parley.ask.kind=task parley.ask.state=answered",
		"tool shout 18-21 " + call + "shout gen_ai.tool.call.id=c3 parley.effect=once parley.attempts=0",
		"step 14-21 ",
		"chat small 22-24 " + model + "0 gen_ai.usage.output_tokens=0 gen_ai.usage.cache_read.input_tokens=0",
		"step 22-24 ",
		"turn 0-25 timeout gen_ai.operation.name=invoke_agent gen_ai.agent.name=main gen_ai.conversation.id=" + session + " parley.turn=" + id + " parley.state=failed parley.messages=1 parley.parent=",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the spans are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	last := all[len(all)-1]
	var events []string
	for _, e := range last.Events {
		events = append(events, fmt.Sprintf("%s %v", e.Name, e.At.Sub(began()).Seconds()))
	}
	if want := []string{"turn_parked 7", "turn_unparked 10", "resumed 12", "turn_parked 18", "turn_unparked 22"}; !slices.Equal(events, want) {
		t.Errorf("what happened is %q, want %q", events, want)
	}
	child := trace.Of(subagents.MailID("t1"))
	if links := all[7].Links; len(links) != 1 || links[0] != (trace.Link{Trace: child, Span: child.Turn(subagents.MailID("t1"))}) {
		t.Errorf("the task's links are %v", links)
	}
	parents := map[trace.SpanID]bool{trace.Of(id).Receipt(): true}
	for _, one := range all {
		parents[one.ID] = true
	}
	if len(parents) != len(all)+1 {
		t.Errorf("%d spans have %d ids", len(all), len(parents)-1)
	}
	for _, one := range all {
		if !parents[one.Parent] {
			t.Errorf("the parent of %s is nowhere", one.Name)
		}
	}
}

// However often and by whichever process the spans of a turn are made, they are the same; if processes continue one
// after another, each span is recorded once.
func TestSpansAreTheSameWhoeverMakesThem(t *testing.T) {
	s := fullTurn(t)
	a := &agent.Agent{Name: "main", Tools: shoutTool()}
	of, records := s.upTo(len(s.records))
	all := spans.Of(a, session, of, records, 0, trace.Spans)
	for cut := 1; cut < len(s.records); cut++ {
		before, known := s.upTo(cut)
		pieces := spans.Of(a, session, before, known, 0, trace.Spans)
		pieces = append(pieces, spans.Of(a, session, of, records, int64(cut), trace.Spans)...)
		if !reflect.DeepEqual(pieces, all) {
			t.Errorf("cut after entry %d, the spans are\n%+v\nwant\n%+v", cut, pieces, all)
		}
	}
}

func TestRecordedSpansAreNotRecordedAgain(t *testing.T) {
	s := fullTurn(t)
	for n, want := range map[int]int64{1: 0, 7: 0, 8: 0 /* nobody was asked yet */, 9: 8, 15: 8, 19: 8, 20: 19, 26: 19} {
		of, records := s.upTo(n)
		if got := spans.RecordedUpTo(of, records); got != want {
			t.Errorf("after entry %d, entries up to %d were told, want %d", n, got, want)
		}
	}
	s = &turnLog{t: t, records: s.records[:7:7]}
	s.add(sessions.KindSuspended, "", nil)
	if of, records := s.upTo(8); spans.RecordedUpTo(of, records) != 8 {
		t.Error("what was told before a suspension is told again")
	}
}

// A countingRedactor counts the redacted values.
type countingRedactor struct {
	oneWordRedactor
	n *int
}

func (c countingRedactor) JSON(raw json.RawMessage) json.RawMessage {
	*c.n++
	return c.oneWordRedactor.JSON(raw)
}

// The calls of earlier steps are not redacted again at each step.
func TestEarlierCallsAreNotRedactedAgain(t *testing.T) {
	s := fullTurn(t)
	of, records := s.upTo(len(s.records))
	for after, want := range map[int64]int{0: 6, 15: 2, 22: 0} {
		n := 0
		spans.Of(&agent.Agent{Name: "main", Tools: shoutTool(), Redact: countingRedactor{n: &n}}, session, of, records, after, trace.Texts)
		if n != want {
			t.Errorf("after entry %d, %d values were redacted, want %d", after, n, want)
		}
	}
}

func TestTextsAreWithoutSecrets(t *testing.T) {
	s := fullTurn(t)
	of, records := s.upTo(len(s.records))
	for detail, want := range map[trace.Detail][]string{
		trace.Spans: nil,
		trace.Texts: {`gen_ai.tool.call.arguments={"a":"***"}`, `gen_ai.tool.call.result={"b":"***"}`, "parley.said=shout the ***", "parley.replied=no ***"},
	} {
		var said strings.Builder
		for _, one := range spans.Of(&agent.Agent{Name: "main", Tools: shoutTool(), Redact: oneWordRedactor{}}, session, of, records, 0, detail) {
			said.WriteString(spanLine(one) + "\n")
		}
		for _, words := range want {
			if !strings.Contains(said.String(), words) {
				t.Errorf("%v: %q is missing in\n%s", detail, words, said.String())
			}
		}
		if strings.Contains(said.String(), "secret") || strings.Contains(said.String(), "Quince") || detail == trace.Spans && strings.Contains(said.String(), "***") {
			t.Errorf("%v: there is too much in\n%s", detail, said.String())
		}
	}
}
