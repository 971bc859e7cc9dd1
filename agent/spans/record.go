package spans

import (
	"time"

	"parley/agent/journal"
	"parley/agent/turn"
	"parley/bus"
	"parley/bus/trace"
)

// Record records the spans of a session's turn that this run has not recorded yet. An earlier holder may have been
// killed before it had sent its spans, so spans that it may have recorded are recorded again, under the same ids.
func Record(s *turn.Session, t *turn.Turn) {
	if trace.IsOn(s.Config.Trace) {
		RecordRead(s, t, s.Journal.Since(t.FirstEntry))
	}
}

// RecordRead does what Record does, for a turn whose records had to be read from the log.
func RecordRead(s *turn.Session, t *turn.Turn, records []journal.Record) {
	detail := trace.DetailOf(s.Config.Trace)
	if detail == trace.Nothing || len(records) == 0 {
		return
	}
	if s.Traced.Turn != t.ID {
		s.Traced = turn.Traced{Turn: t.ID, UpTo: RecordedUpTo(t, records)}
	}
	s.Config.Trace.Record(Of(&s.Agent, s.Key(), t, records, s.Traced.UpTo, detail)...)
	s.Traced.UpTo = records[len(records)-1].N
}

// RecordCommand records the span of a command that was carried out.
func RecordCommand(s *turn.Session, in *bus.Inbound, began time.Time) {
	if !trace.IsOn(s.Config.Trace) {
		return
	}
	of := trace.Of(in.ID)
	span := trace.Span{
		Trace: of, ID: of.Command(in.ID), Name: "command " + in.Text, Kind: trace.Internal, Start: began, End: time.Now(),
		Attributes: []trace.Attribute{trace.Text("gen_ai.conversation.id", s.Key())},
	}
	if !in.Received.IsZero() {
		span.Parent = of.Receipt()
	}
	s.Config.Trace.Record(span)
}
