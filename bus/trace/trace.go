// Package trace describes the way of a message through the processes of a bot as spans, for a collector of traces.
//
// A message's trace has an id that is made from the message's id, and every span in it one that is made from stored
// ids, such as those of a call or of an entry in the log. So a gateway, a worker and a dispatcher add to one trace
// without passing anything on, and a process that continues the work of another gives a span the id that the other
// would have given it. Spans hold ids, names and figures. What people and models have said is in them only if the
// operator asks for that.
package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"parley/bus"
)

// An ID identifies a trace.
type ID [16]byte

// String returns the id in hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// A SpanID identifies a span within its trace.
type SpanID [8]byte

// String returns the id in hexadecimal digits.
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

// Of returns the trace of a message, given its id or an id that is derived from it (see bus.Cause). For a turn's id,
// that is the trace of the turn's first message.
func Of(message string) ID {
	cause, _ := bus.Cause(message)
	if cause == "" {
		cause = message
	}
	return OfWhole(cause)
}

// OfWhole returns the trace of a message that no other message has caused, given its id. It is for ids whose part
// before "#" isn't a message's id, such as those of notices to owners: they begin with an address, so Of would give
// all notices to that address one trace.
func OfWhole(message string) ID {
	sum := sha256.Sum256([]byte("trace\x00" + message))
	return ID(sum[:16])
}

// Span returns the id of a span of a kind. what distinguishes the span from others of its kind in the trace.
func (id ID) Span(kind string, what ...string) SpanID {
	sum := sha256.Sum256([]byte("span\x00" + id.String() + "\x00" + kind + "\x00" + strings.Join(what, "\x00"))) // ids contain no NUL
	return SpanID(sum[:8])
}

// Receipt returns the id of the span that Received makes of the trace's message.
func (id ID) Receipt() SpanID { return id.Span("receipt") }

// Turn returns the id of a turn's span.
func (id ID) Turn(turn string) SpanID { return id.Span("turn", turn) }

// Command returns the id of the span in which a command is carried out, given the id of its message.
func (id ID) Command(message string) SpanID { return id.Span("command", message) }

// A Kind says which side of an exchange a span is. The values are the same as in OpenTelemetry.
type Kind int

// These are the kinds of spans.
const (
	Internal Kind = 1 // work within the bot
	Server   Kind = 2 // a request to the bot
	Client   Kind = 3 // a request by the bot
)

// A Span is a piece of work, with its beginning and its end.
type Span struct {
	Trace      ID
	ID, Parent SpanID // Parent is zero for a span without a parent
	Name       string
	Kind       Kind
	Start, End time.Time
	// Failed is the code of the failure, or "" if the work succeeded.
	Failed     string
	Attributes []Attribute
	Events     []Event
	Links      []Link
}

// Received returns the span of a message that was received on a channel, and published for a session at that time.
func Received(in bus.Inbound, session string, published time.Time) Span {
	of := Of(in.ID)
	return Span{
		Trace: of, ID: of.Receipt(), Name: "receive " + in.At.Channel, Kind: Server, Start: in.Received, End: published,
		Attributes: []Attribute{Text("parley.channel", in.At.Channel), Text("parley.message", in.ID), Text("gen_ai.conversation.id", session)},
	}
}

// An Attribute is a named fact about a span: a text or a number.
type Attribute struct {
	Key    string
	Text   string
	Number int64
	// IsNumber reports whether the value is the Number.
	IsNumber bool
}

// Text returns an attribute with a text, which it cuts if it is long.
func Text(key, text string) Attribute { return Attribute{Key: key, Text: cut(text)} }

// Number returns an attribute with a number.
func Number[N ~int | ~int64](key string, n N) Attribute {
	return Attribute{Key: key, Number: int64(n), IsNumber: true}
}

// maxTextBytes is how many bytes of a text an attribute has.
const maxTextBytes = 4 << 10

func cut(text string) string {
	if len(text) <= maxTextBytes {
		return text
	}
	end := maxTextBytes
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// An Event is something that happened during a span.
type Event struct {
	Name string
	At   time.Time
}

// A Link refers to a related span of another trace.
type Link struct {
	Trace ID
	Span  SpanID
}

// A Detail says what a Recorder wants.
type Detail int

// These are the details, each of which includes the one before it.
const (
	Nothing Detail = iota // no spans
	Spans                 // spans without texts
	Texts                 // also what was said, and the arguments and results of calls, without secrets
)

// A Recorder receives spans.
type Recorder interface {
	// Detail returns what the recorder wants now. Callers check it before they create spans.
	Detail() Detail
	// Record records spans that have ended. It returns at once, and may drop them.
	Record(spans ...Span)
}

// IsOn reports whether a recorder, which may be nil, wants any spans.
func IsOn(r Recorder) bool { return DetailOf(r) != Nothing }

// DetailOf returns what a recorder wants, or Nothing if it is nil.
func DetailOf(r Recorder) Detail {
	if r == nil {
		return Nothing
	}
	return r.Detail()
}
