package trace_test

import (
	"slices"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/trace"
)

// Ids stay the same across releases, so processes of two releases write to one trace.
func TestIDsStayTheSame(t *testing.T) {
	of := trace.Of("telegram:1:2")
	for _, c := range []struct{ got, want string }{
		{of.String(), "caa89758887f9830f3977fa2922f141d"},
		{of.Receipt().String(), "c46ceb59c25963a0"},
		{of.Turn("telegram:1:2").String(), "c560b0fbd873b276"},
		{of.Command("telegram:1:2").String(), "7cd44f3b657c6df3"},
		{of.Span("call", "telegram:1:2", "c1").String(), "bc92827a64423bab"},
	} {
		if c.got != c.want {
			t.Errorf("an id is %s, want %s", c.got, c.want)
		}
	}
}

func TestWhatIsDerivedFromAMessageIsInItsTrace(t *testing.T) {
	of := trace.Of("a:1")
	for _, id := range []string{bus.ReplyID("a:1"), bus.DerivedID("a:1", "#failed"), "a:1#1234#reply"} {
		if got := trace.Of(id); got != of {
			t.Errorf("%s is in trace %s, want %s", id, got, of)
		}
	}
	if trace.Of("a:2") == of || trace.Of("#a") == trace.Of("#b") {
		t.Error("two messages have one trace")
	}
	if of.Span("x", "ab", "c") == of.Span("x", "a", "bc") || of.Turn("a:1") == of.Command("a:1") || of.Turn("a:1") == trace.Of("a:2").Turn("a:1") {
		t.Error("two spans have one id")
	}
}

func TestTheSpanOfAReceiptNamesNobody(t *testing.T) {
	began := time.Now()
	s := trace.Received(bus.Inbound{ID: "a:1", From: bus.Person{ID: "a:7", Name: "Quince"}, At: bus.Address{Channel: "a", Chat: "7"}, Text: "rhubarb", Received: began}, "main:a:7", began.Add(time.Second))
	if s.ID != trace.Of("a:1").Receipt() || s.Parent != (trace.SpanID{}) || s.Name != "receive a" || !s.Start.Equal(began) || s.End.Sub(s.Start) != time.Second {
		t.Errorf("the span is %+v", s)
	}
	want := []trace.Attribute{trace.Text("parley.channel", "a"), trace.Text("parley.message", "a:1"), trace.Text("gen_ai.conversation.id", "main:a:7")}
	if !slices.Equal(s.Attributes, want) {
		t.Errorf("it says %+v, want %+v", s.Attributes, want)
	}
}
