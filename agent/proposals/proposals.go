// Package proposals finds what of a long conversation is worth remembering, so that it can be proposed to the person.
//
// A model is asked once for each part of a session's log that is left behind, by a summary or by /new. It reads what the
// person said and, if nothing in the conversation may have been written by strangers, what the agent answered. What it
// proposes is in no memory: the person decides.
package proposals

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/agent/frames"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
)

const (
	// leastSaid is how many messages of the person a part of a conversation has at least that a model is asked about.
	leastSaid = 5
	// mostFacts is how many facts of one part are proposed.
	mostFacts = 3
	// mostFact is how long a fact is at most, in bytes. A longer one is dropped, because cut it could mean something else.
	mostFact = 300
	// mostRead is how much of the conversation the model reads, in bytes, and mostMessage how much of one message.
	mostRead, mostMessage = 32_000, 2_000
	// mostRemembered is how much of each memory the model reads, in bytes.
	mostRemembered = 8_000
	// answerTokens bounds the answer. Models that reason need some before they say anything.
	answerTokens = 2048
	// Expires is how long the person has to decide.
	Expires = 7 * 24 * time.Hour
	// MostEntries is how many entries of a log are read for a part of it.
	MostEntries = 400
)

// A Store keeps what is proposed, and tells people of it.
type Store interface {
	// May reports whether anything may be proposed now: processes of an older release would not erase it.
	May(ctx context.Context) (bool, error)
	// Last returns up to which entry of a session's log a model was asked last, and whether the person was told.
	Last(ctx context.Context, session string) (covers int64, told bool, err error)
	// Past returns, as far as they were not erased, the newest entries, at most MostEntries, of a session's log after one entry and up to another. whole
	// says that these are all.
	Past(ctx context.Context, session string, after, upTo int64) (entries []sessions.Entry, whole bool, err error)
	// Known returns what is remembered and what was proposed.
	Known(ctx context.Context, agent, person string) (Known, error)
	// Propose keeps what was found in a part of a log, which may be nothing, unless that was done before.
	Propose(ctx context.Context, r Round) error
	// Forget erases what was proposed of a session, in any state.
	Forget(ctx context.Context, session string) error
	// Tell tells the person what is kept, once, however often it is called.
	Tell(ctx context.Context, session string, covers int64) error
}

// A Round is what was found in a part of a log.
type Round struct {
	Session, Agent string
	Covers         int64  // the part's last entry
	Cause          string // the id of the message after which the model was asked
	Person         string
	At             bus.Address // the private chat of the person
	Facts          []Fact
}

// A Fact is something worth remembering.
type Fact struct {
	OfAgent bool // for all conversations of the agent, and not only for private ones with the person
	Text    string
}

// Known is what need not be proposed.
type Known struct {
	OfPerson, OfAgent string // what is remembered
	Untrusted         bool   // strangers may have written some of that
	Proposed          []string
}

// A Conversation is a part of a conversation as the model reads it.
type Conversation struct {
	lines []line // the oldest first
	said  int    // how many the person has said
}

// A line is a text with the tag of its frame.
type line struct{ tag, text string }

// Read returns what a person said in a private chat and, if trusted is true, what the agent answered. What tools returned
// is left out, and so is what others said.
func Read(records []journal.Record, person string, trusted bool) Conversation {
	var c Conversation
	theirs := map[string]bool{} // ids of messages
	for i := range records {
		r := &records[i]
		switch d := r.Data.(type) {
		case sessions.User:
			if r.Person != person || d.Untrusted || d.Schedule != "" {
				continue
			}
			theirs[r.Cause] = true
			c.add(frames.Message, d.Text)
		case sessions.Fetched:
			if theirs[d.Message] && !d.Untrusted {
				c.add(frames.Message, d.Words)
			}
		case sessions.AskEnded:
			if r.Person == person && d.Question != "" && d.Answer != "" {
				if trusted {
					c.add(frames.Past, d.Question)
				}
				c.add(frames.Message, d.Answer)
			}
		case sessions.Text:
			if trusted {
				c.add(frames.Past, d.Text)
			}
		}
	}
	return c
}

// add adds a text, unless it is empty.
func (c *Conversation) add(tag, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if tag == frames.Message {
		c.said++
	}
	c.lines = append(c.lines, line{tag, beginning(text, mostMessage)})
}

// IsLong reports whether the person has said so much that a model is asked.
func (c Conversation) IsLong() bool { return c.said >= leastSaid }

// Request returns the request for the facts in a conversation. owner says that the person owns the bot, and so decides about
// the agent's memory too.
func (c Conversation) Request(known Known, owner bool) llm.Request {
	var b strings.Builder
	from, size := len(c.lines), 0
	for from > 0 && size+len(c.lines[from-1].text) <= mostRead {
		from--
		size += len(c.lines[from].text)
	}
	for _, l := range c.lines[from:] {
		writeFrame(&b, l.tag, "", l.text)
	}
	if !known.Untrusted {
		writeFrame(&b, frames.Remembered, "the person", beginning(known.OfPerson, mostRemembered))
		writeFrame(&b, frames.Remembered, "all your conversations", beginning(known.OfAgent, mostRemembered))
	}
	writeFrame(&b, frames.Remembered, "what you proposed before", beginning(strings.Join(known.Proposed, "\n"), mostRemembered))
	system := textFind
	if owner {
		system += textFindForAgent
	}
	return llm.Request{
		System: system + textHowToAnswer, MaxTokens: answerTokens,
		Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: b.String()}}}},
	}
}

// writeFrame writes a text in its frame, unless it is empty.
func writeFrame(b *strings.Builder, tag, of, text string) {
	if text == "" {
		return
	}
	b.WriteString("<" + tag)
	frames.WriteAttribute(b, "of", of)
	b.WriteString(">\n" + frames.Escape(text) + "\n</" + tag + ">\n")
}

// The words with which a model begins the line of a fact.
const (
	ofPerson = "person:"
	ofAgent  = "agent:"
)

// Facts returns what a model's answer proposes, without what is known and without what has a secret, which redact takes out.
// Facts for the agent's memory count only from an owner's conversation.
func Facts(answer string, owner bool, known Known, redact func(string) string) []Fact {
	var found []Fact
	have := lettersOfAll(known)
	for text := range strings.Lines(answer) {
		text = strings.TrimLeftFunc(oneLine(text), func(r rune) bool { return !unicode.IsLetter(r) }) // a bullet, a number or bold type
		fact := Fact{}
		switch lower := strings.ToLower(text); {
		case strings.HasPrefix(lower, ofPerson):
			fact.Text = text[len(ofPerson):]
		case strings.HasPrefix(lower, ofAgent) && owner:
			fact.OfAgent, fact.Text = true, text[len(ofAgent):]
		default:
			continue
		}
		fact.Text = strings.TrimSpace(strings.TrimLeft(fact.Text, "*_ "))
		letters := lettersOf(fact.Text)
		if letters == "" || len(fact.Text) > mostFact || redact(fact.Text) != fact.Text || slices.ContainsFunc(have, func(known string) bool { return strings.Contains(known, letters) }) {
			continue
		}
		if found, have = append(found, fact), append(have, letters); len(found) == mostFacts {
			break
		}
	}
	return found
}

// lettersOfAll returns the letters of all that is known.
func lettersOfAll(known Known) []string {
	all := []string{lettersOf(known.OfPerson), lettersOf(known.OfAgent)}
	for _, text := range known.Proposed {
		all = append(all, lettersOf(text))
	}
	return all
}

// lettersOf returns the letters and digits of a text in lower case, by which facts are compared.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// oneLine returns a text on one line, without invisible characters.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// beginning returns the beginning of a text: at most that many bytes, on whole characters.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
