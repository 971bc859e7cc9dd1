package dispatch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/bus/trace"
	"parley/channels"
)

// A tracing records the spans of deliveries: how long a message waited, each send, and the delivery as a whole.
type tracing struct {
	recorder trace.Recorder // nil: nothing is recorded
	channel  string
}

// traceAndParent returns the trace that a message belongs to, and the span from which the message was
// published: a delivery, a turn or a command. The span is zero if there is none.
func traceAndParent(out *bus.Outbound) (of trace.ID, parent trace.SpanID) {
	of = traceOf(out)
	if delivered := deliveredBefore(out.ID); delivered != "" {
		return of, deliveryID(of, delivered)
	}
	switch cause := bus.ReplyCause(out.ID); {
	case out.Turn != "":
		parent = of.Turn(out.Turn)
	case out.Session != "" && cause != out.ID:
		parent = of.Command(cause)
	}
	return of, parent
}

// traceOf returns the trace that a message belongs to. The ids of notices to owners begin with the address that
// they go to, and not with the id of a message. So each such notice has its own trace, together with the
// deliveries that follow from it.
func traceOf(out *bus.Outbound) trace.ID {
	if out.Turn != "" {
		return trace.Of(out.Turn)
	}
	first := out.ID
	for before := deliveredBefore(first); before != ""; before = deliveredBefore(first) {
		first = before
	}
	if rest, ok := strings.CutPrefix(first, out.To.String()); ok && out.Session == "" && strings.IndexAny(rest, "# ") == 0 {
		return trace.OfWhole(first)
	}
	return trace.Of(first)
}

// deliveredBefore returns the id of the message from whose delivery a message with this id was published: as a
// notice about it, or as a copy to another address. It returns "" if there is none.
func deliveredBefore(id string) string {
	if of := bus.FallbackOf(id); of != id {
		return of
	}
	for _, suffix := range []string{excuseSuffix, fileSuffix, wholeSuffix} {
		if at := strings.LastIndex(id, suffix); at > 0 {
			return id[:at]
		}
	}
	return ""
}

// recordSpan adds the attributes that all spans of a delivery have to a span, and records it.
func (t *tracing) recordSpan(d *delivery, s trace.Span, attributes ...trace.Attribute) {
	s.Attributes = append([]trace.Attribute{trace.Text("parley.channel", t.channel), trace.Text("parley.message", d.record.ID)}, attributes...)
	t.recorder.Record(s)
}

// deliveryID returns the id of the span for the whole delivery of a message.
func deliveryID(of trace.ID, message string) trace.SpanID { return of.Span("delivery", message) }

// recordSend records a call to the platform that sent a part, as a span of its own; err is the call's error, or
// nil.
func (t *tracing) recordSend(d *delivery, part int, began time.Time, took time.Duration, err error) {
	if !trace.IsOn(t.recorder) {
		return
	}
	of := traceOf(&d.out)
	s := trace.Span{
		Trace: of, ID: of.Span("send", d.record.ID, strconv.Itoa(part), strconv.FormatInt(began.UnixNano(), 10)), Parent: deliveryID(of, d.record.ID),
		Name: "send " + t.channel, Kind: trace.Client, Start: began, End: began.Add(took),
	}
	outcome := "sent"
	if err != nil {
		fault := channels.FaultOf(err)
		outcome = string(fault.Fault)
		s.Failed = cmp.Or(fault.Code, outcome)
	}
	t.recordSpan(d, s, trace.Number("parley.part", part+1), trace.Number("parley.attempt", d.attempts), trace.Text("parley.outcome", outcome))
}

// recordDelivery records the span of a whole delivery, including how long the message had waited, once nothing
// more is done for the message.
func (t *tracing) recordDelivery(d *delivery, how *deliveryError) {
	if !trace.IsOn(t.recorder) {
		return
	}
	of, parent := traceAndParent(&d.out)
	from := d.out.At
	if from.IsZero() {
		from = d.startedAt
	}
	if d.attempts == 1 {
		t.recordSpan(d, trace.Span{
			Trace: of, ID: of.Span("outbox", d.record.ID), Parent: deliveryID(of, d.record.ID), Name: "wait in the outbox", Kind: trace.Internal, Start: from, End: d.startedAt,
		})
	}
	if how != nil && !how.discarded && how.deadLetterReason == "" {
		return // the message will be tried again
	}
	s := trace.Span{
		Trace: of, ID: deliveryID(of, d.record.ID), Parent: parent, Name: "deliver " + t.channel, Kind: trace.Internal, Start: from, End: time.Now(),
	}
	outcome := "sent"
	switch {
	case how == nil && slices.ContainsFunc(d.record.Parts, func(p channels.SentPart) bool { return p.State == channels.OutcomeUnknown }):
		outcome, s.Failed = channels.OutcomeUnknown, channels.OutcomeUnknown
	case how == nil:
	case how.deadLetterReason != "":
		outcome, s.Failed = "given up", how.deadLetterReason
	default:
		outcome = "discarded"
	}
	t.recordSpan(d, s, trace.Number("parley.parts", len(d.record.Parts)), trace.Number("parley.attempts", d.attempts), trace.Text("parley.outcome", outcome))
}
