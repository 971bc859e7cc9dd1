package transcript

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"parley/agent/frames"
	"parley/bus"
	"parley/sessions"
)

// What people and the system say reaches the model in frames:
//
//	<message from="slack:U1" name="Alex" at="2026-11-22 10:00 UTC">
//	can you translate this?
//	<attachment kind="document" name="a.pdf" type="application/pdf" bytes="1024" path="attachments/7-a.pdf"></attachment>
//	<quote kind="forwarded" from="slack:U2" name="Bob" chat="ops" at="2026-11-21 09:00 UTC">
//	…
//	</quote>
//	</message>
//
//	<notice>what the system says</notice>
//
// Only the agent writes these tags. No other text in a message, a quote, a notice or a
// summary can contain one, because its "<" is replaced by "&lt;". So nobody can pass
// their words off as somebody else's, or as the system's.

// How many characters of quotes the model is shown.
const (
	maxQuote  = 8_000  // in one quote
	maxQuotes = 16_000 // in all quotes of one message
)

// messageFrameBytes is the estimated number of bytes of a message's frame, not counting the text.
const messageFrameBytes = 160

// frameMessage returns a person's message in a frame that names the person and the time. It depends only on the
// entry and its files, so it is the same in every step.
func frameMessage(person string, u sessions.User, files []file) string {
	var b strings.Builder
	b.Grow(len(u.Text) + messageFrameBytes)
	b.WriteString("<" + frames.Message)
	frames.WriteAttribute(&b, "from", cmp.Or(person, "unknown"))
	frames.WriteAttribute(&b, "name", u.Name)
	frames.WriteAttribute(&b, "chat", u.Chat)
	frames.WriteAttribute(&b, "schedule", u.Schedule)
	writeTime(&b, u.Sent)
	b.WriteString(">\n")
	if u.Deleted {
		b.WriteString("[deleted by the person who said it]\n")
	}
	writeLine(&b, frames.Escape(u.Text))
	frameFiles(&b, files)
	frameQuotes(&b, u.Quotes)
	b.WriteString("</" + frames.Message + ">")
	return b.String()
}

// frameAnswer returns a person's answer to the agent's question, in the frame of a message
// that names the question.
func frameAnswer(person string, d sessions.AskEnded) string {
	var b strings.Builder
	b.WriteString("<" + frames.Message)
	frames.WriteAttribute(&b, "from", cmp.Or(person, "unknown"))
	frames.WriteAttribute(&b, "name", d.Name)
	frames.WriteLongAttribute(&b, "answers", d.Question)
	b.WriteString(">\n")
	writeLine(&b, frames.Escape(d.Answer))
	b.WriteString("</" + frames.Message + ">")
	return b.String()
}

// frameNotice returns a notice from the system in its frame.
func frameNotice(n sessions.Notice) string {
	if len(n.Quotes) == 0 {
		return "<" + frames.Notice + ">" + frames.Escape(n.Text) + "</" + frames.Notice + ">"
	}
	var b strings.Builder
	b.WriteString("<" + frames.Notice + ">\n")
	text := n.Text
	if text == "" && n.Code == sessions.NoticeTold {
		text = "You said this here, on behalf of somebody who asked you to in another conversation. An answer to it will come here."
	}
	writeLine(&b, frames.Escape(text))
	frameQuotes(&b, n.Quotes)
	b.WriteString("</" + frames.Notice + ">")
	return b.String()
}

// FrameSummary returns a summary of the past in its frame.
func FrameSummary(text string) string {
	return "<" + frames.Summary + " of=\"what was said before; it may lack details, so look again where exact values matter\">\n" +
		frames.Escape(text) + "\n</" + frames.Summary + ">"
}

// frameQuotes writes quotes for the model, each in a frame that marks where another person's words begin and
// end. If a quote was shortened, its frame says how much is left out.
func frameQuotes(b *strings.Builder, quotes []sessions.Quote) {
	left := maxQuotes
	for _, q := range quotes {
		text, cut := frames.Cut(q.Text, min(maxQuote, left))
		left -= utf8.RuneCountInString(text)
		b.WriteString("<" + frames.Quote)
		frames.WriteAttribute(b, "kind", quoteKind(q))
		frames.WriteAttribute(b, "from", q.Person)
		frames.WriteAttribute(b, "name", q.Name)
		frames.WriteAttribute(b, "chat", q.Chat)
		writeTime(b, q.At)
		if cut > 0 {
			frames.WriteAttribute(b, "cut", fmt.Sprintf("the last %d characters are not shown", cut))
		}
		b.WriteString(">\n")
		writeLine(b, frames.Escape(text))
		b.WriteString("</" + frames.Quote + ">\n")
	}
}

// quoteKind returns the word by which the model is told the kind of a quote.
func quoteKind(q sessions.Quote) string {
	switch {
	case q.Kind == bus.Answered:
		return "replied-to"
	case q.Operator:
		return "said-here-by-operator"
	case q.Kind == bus.Told:
		return "said-here-on-behalf-of"
	}
	return q.Kind
}

// writeLine writes a text and a line feed, unless the text is empty.
func writeLine(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString(text)
		b.WriteByte('\n')
	}
}

// writeTime writes the attribute at, unless the time is zero.
func writeTime(b *strings.Builder, at time.Time) {
	if !at.IsZero() {
		var room [32]byte
		b.WriteString(` at="`)
		b.Write(at.UTC().AppendFormat(room[:0], "2006-01-02 15:04 UTC"))
		b.WriteByte('"')
	}
}

// Words returns what people said themselves in a text with frames, one text per message, without quotes and
// files.
func Words(text string) []string {
	const begin, end, quote, file = "<" + frames.Message + " ", "</" + frames.Message + ">", "<" + frames.Quote + " ", "<" + frames.Attachment + " "
	var said []string
	for {
		_, rest, found := strings.Cut(text, begin)
		if !found {
			return said
		}
		_, rest, _ = strings.Cut(rest, ">\n") // the end of the tag; attributes don't contain it
		words, after, _ := strings.Cut(rest, end)
		words, _, _ = strings.Cut(words, quote)
		words, _, _ = strings.Cut(words, file)
		said = append(said, strings.TrimSuffix(words, "\n"))
		text = after
	}
}

// frameText returns a text in a frame with that tag. attributes alternates names and values.
func frameText(tag, text string, attributes ...string) string {
	var b strings.Builder
	b.WriteString("<" + tag)
	for i := 0; i+1 < len(attributes); i += 2 {
		frames.WriteLongAttribute(&b, attributes[i], attributes[i+1])
	}
	b.WriteString(">\n")
	writeLine(&b, frames.Escape(text))
	b.WriteString("</" + tag + ">")
	return b.String()
}
