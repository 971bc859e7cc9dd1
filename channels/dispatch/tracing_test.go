package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/trace"
	"parley/channels"
	"parley/channels/dispatch"
)

// A spanRecorder keeps the recorded spans.
type spanRecorder struct {
	mu    sync.Mutex
	spans []trace.Span
}

func (*spanRecorder) Detail() trace.Detail { return trace.Spans }

func (r *spanRecorder) Record(spans ...trace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, spans...)
}

// spansOf returns the spans of a message's delivery in the trace of another message.
func (r *spanRecorder) spansOf(message, cause string) (all []trace.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.Trace == trace.Of(cause) && slices.Contains(s.Attributes, trace.Text("parley.message", message)) {
			all = append(all, s)
		}
	}
	return all
}

// describeSpan returns the parts of a span that tests compare.
func describeSpan(s trace.Span) string {
	var facts strings.Builder
	for _, a := range s.Attributes {
		if name, ours := strings.CutPrefix(a.Key, "parley."); ours && name != "channel" && name != "message" {
			facts.WriteString(" " + name + "=" + a.Text)
			if a.IsNumber {
				facts.WriteString(fmt.Sprint(a.Number))
			}
		}
	}
	return strings.Join(strings.Fields(s.Name+" "+s.Failed+facts.String()), " ")
}

// Each call to the platform is a span below the span of the delivery. The delivery's span ends when nothing
// more is done for the message.
func TestDeliveriesAreTraced(t *testing.T) {
	spans := &spanRecorder{}
	var failed sync.Map
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		d.Trace = spans
		s.Platform.ChannelLimits.Length = 100
		s.Platform.OnSend = func(_ context.Context, to bus.Address, _ channels.Part) (bool, error) {
			fault := map[string]*channels.SendError{
				"later": {Fault: channels.Retry, RetryAfter: 40 * time.Second, Code: "503"}, "never": {Fault: channels.Rejected, Code: "no_chat"}, "perhaps": {Fault: channels.Unknown, Code: "cut"},
			}[to.Chat]
			if _, again := failed.LoadOrStore(to.Chat, true); fault != nil && (!again || to.Chat == "never") {
				return false, fault
			}
			return true, nil
		}
	}
	type want struct {
		out    bus.Outbound
		parent trace.SpanID
		lines  []string
	}
	of := func(id, chat, text string, turn string) bus.Outbound {
		out := newOutbound(id, chat, text)
		out.Turn = turn
		return out
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		alert := of("alert", "here", "three", "")
		alert.Session = ""
		old := of("c:1#reply", "here", strings.Repeat("nine words of which one is the last one, ", 3), "c:1")
		old.At = time.Now().Add(-5 * time.Second)
		all := []want{
			{of("a:1#reply", "later", "one", "a:1"), trace.Of("a:1").Turn("a:1"), []string{
				"send c 503 part=1 attempt=1 outcome=retry", "wait in the outbox", "send c part=1 attempt=2 outcome=sent", "deliver c parts=1 attempts=2 outcome=sent"}},
			{of("b:1#reply", "here", "two", ""), trace.Of("b:1").Command("b:1"), []string{
				"send c part=1 attempt=1 outcome=sent", "wait in the outbox", "deliver c parts=1 attempts=1 outcome=sent"}},
			{old, trace.Of("c:1").Turn("c:1"), []string{
				"send c part=1 attempt=1 outcome=sent", "send c part=2 attempt=1 outcome=sent", "wait in the outbox", "deliver c parts=2 attempts=1 outcome=sent"}},
			{alert, trace.SpanID{}, []string{"send c part=1 attempt=1 outcome=sent", "wait in the outbox", "deliver c parts=1 attempts=1 outcome=sent"}},
			{of("d:1#reply", "never", "four", "d:1"), trace.Of("d:1").Turn("d:1"), []string{
				"send c no_chat part=1 attempt=1 outcome=rejected", "wait in the outbox", "deliver c no_chat parts=1 attempts=1 outcome=given up"}},
			{of("e:1#reply", "perhaps", "five", "e:1"), trace.Of("e:1").Turn("e:1"), []string{
				"send c cut part=1 attempt=1 outcome=unknown", "wait in the outbox", "send c part=1 attempt=2 outcome=sent", "deliver c parts=1 attempts=2 outcome=sent"}},
		}
		for _, w := range all {
			s.publish(t, w.out)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		for _, w := range all {
			var got []string
			ids := map[trace.SpanID]bool{}
			found := spans.spansOf(w.out.ID, w.out.ID)
			if len(found) == 0 {
				t.Fatalf("%s has no spans", w.out.ID)
			}
			delivery := found[len(found)-1]
			for _, s := range found {
				got = append(got, describeSpan(s))
				ids[s.ID] = true
				if parent := map[bool]trace.SpanID{true: w.parent, false: delivery.ID}[s.ID == delivery.ID]; s.Parent != parent {
					t.Errorf("%s: %q is below %v, want %v", w.out.ID, s.Name, s.Parent, parent)
				}
			}
			if !slices.Equal(got, w.lines) || len(ids) != len(found) {
				t.Errorf("%s: %d ids of the spans\n%s\nwant\n%s", w.out.ID, len(ids), strings.Join(got, "\n"), strings.Join(w.lines, "\n"))
			}
		}
		later, waited := spans.spansOf("a:1#reply", "a:1"), spans.spansOf("c:1#reply", "c:1")[2]
		if took := later[3].End.Sub(later[3].Start); took < 40*time.Second || later[1].End.Sub(later[1].Start) > time.Second {
			t.Errorf("the delivery took %v, of which it waited %v before the first try", took, later[1].End.Sub(later[1].Start))
		}
		if took := waited.End.Sub(waited.Start).Round(time.Second); took != 5*time.Second {
			t.Errorf("what was 5 s old had waited for %v", took)
		}
		refused, excuse := spans.spansOf("d:1#reply", "d:1"), spans.spansOf("d:1#reply#excuse", "d:1")
		if len(excuse) == 0 || excuse[len(excuse)-1].Parent != refused[len(refused)-1].ID {
			t.Errorf("the delivery of the excuse is not below that of the answer: %+v", excuse)
		}
	})
}

// If nobody knows whether a message has arrived, its span does not say that it was sent.
func TestADeliveryWithUnknownOutcomeIsTraced(t *testing.T) {
	spans := &spanRecorder{}
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		d.Trace, d.Policy.OnUnknown = spans, "drop"
		s.Platform.OnSend = func(context.Context, bus.Address, channels.Part) (bool, error) {
			return false, &channels.SendError{Fault: channels.Unknown, Code: "cut"}
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a:1#reply", "here", "one"))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		found := spans.spansOf("a:1#reply", "t")
		if len(found) == 0 || describeSpan(found[len(found)-1]) != "deliver c unknown parts=1 attempts=2 outcome=unknown" {
			t.Errorf("the spans are %+v", found)
		}
	})
}

// Notices to an owner have ids that begin with the chat's address. Each of them has its own trace; an answer is
// in the trace of the message that it answers.
func TestEachNoticeToOwnersHasATraceOfItsOwn(t *testing.T) {
	spans := &spanRecorder{}
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		d.Trace = spans
		s.Platform.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
			if strings.Contains(part.Text, "refuse") {
				return false, &channels.SendError{Fault: channels.Rejected, Code: "no"}
			}
			return true, nil
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		ids := []string{"c:7#concern/disk/a/0", "c:7#concern/disk/a/over", "c:7 budget#owner/2026-03-04", "c:7 budget#owner/2026-03-05", "c:7:1#unknown", "c:7:1#people"}
		for _, id := range ids {
			s.publish(t, bus.Outbound{ID: id, To: bus.Address{Channel: "c", Chat: "7"}, Text: "refuse this", At: time.Now()})
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		with := map[trace.ID][]string{}
		for _, one := range spans.spans {
			for _, a := range one.Attributes {
				if a.Key == "parley.message" && !slices.Contains(with[one.Trace], a.Text) {
					with[one.Trace] = append(with[one.Trace], a.Text)
				}
			}
		}
		if len(with) != 5 || len(with[trace.Of("c:7:1")]) < 2 {
			t.Errorf("the traces are %v", with)
		}
		for _, id := range ids[:4] {
			if in := with[trace.OfWhole(id)]; len(in) == 0 || in[0] != id || len(in) > 1 && (len(in) > 2 || in[1] != id+"#excuse") {
				t.Errorf("in the trace of %s are %v", id, in)
			}
		}
	})
}
