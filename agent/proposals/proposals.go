// Package proposals finds facts in a long conversation that are worth remembering, to propose them to the person.
//
// A model is asked once about each part of a session's log that a summary or /new replaces. It reads what the person
// said. It also reads what the agent answered, unless strangers may have written something in the conversation. No
// proposal is in a memory until the person keeps it.
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
	// minSaid is the fewest messages from the person in a part of a conversation for a model to be asked about it.
	minSaid = 5
	// maxFacts is how many facts from one part are proposed at most.
	maxFacts = 3
	// maxFactBytes is the size limit of a fact, in bytes. A longer fact is dropped, because a shortened one could mean something else.
	maxFactBytes = 300
	// maxReadBytes limits how much of the conversation the model reads, in bytes, and maxMessageBytes how much of one message.
	maxReadBytes, maxMessageBytes = 32_000, 2_000
	// maxRemembered limits how much of each memory the model reads, in bytes.
	maxRemembered = 8_000
	// answerTokens limits the answer. Reasoning models need some tokens before they write anything.
	answerTokens = 2048
	// Expires is how long the person has to decide.
	Expires = 7 * 24 * time.Hour
	// MostEntries limits how many entries of the log are read for one part.
	MostEntries = 400
)

// A Store reads what proposals are made from, which is the log and what is remembered, stores the proposals, and
// tells people about them.
type Store interface {
	// May reports whether anything may be proposed now. Nothing may while a process of an older release serves,
	// because it wouldn't erase proposals.
	May(ctx context.Context) (bool, error)
	// Last returns up to which entry of a session's log a model was asked last, and whether the person was told.
	Last(ctx context.Context, session string) (covers int64, told bool, err error)
	// Past returns the newest entries of a session's log after one entry and up to another, at most MostEntries,
	// without those that were erased. whole reports that these are all.
	Past(ctx context.Context, session string, after, upTo int64) (entries []sessions.Entry, whole bool, err error)
	// Known returns what is remembered already and what was proposed before.
	Known(ctx context.Context, agent, person string) (Known, error)
	// Propose stores what was found in a part of a log, which may be nothing. It does nothing if that was done before.
	Propose(ctx context.Context, r Round) error
	// Forget erases the proposals from a session, in any state.
	Forget(ctx context.Context, session string) error
	// Tell tells the person about the stored proposals, only once no matter how often it is called.
	Tell(ctx context.Context, session string, covers int64) error
}

// A Round contains the facts found in one part of a log.
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

// Known contains what need not be proposed again.
type Known struct {
	OfPerson, OfAgent string // what is remembered
	Untrusted         bool   // strangers may have written some of what is remembered
	Proposed          []string
}

// A Conversation is a part of a conversation as the model reads it.
type Conversation struct {
	lines []line // the oldest first
	said  int    // how many lines are the person's
}

// A line is a text with the tag of its frame.
type line struct{ tag, text string }

// Read returns what a person said in a private chat and, if trusted is true, what the agent answered. It leaves out
// results of tools and what others said.
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
				c.add(frames.Message, d.SpokenWords)
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

// add adds a text, or its beginning (maxMessageBytes), unless it is empty.
func (c *Conversation) add(tag, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if tag == frames.Message {
		c.said++
	}
	c.lines = append(c.lines, line{tag, beginning(text, maxMessageBytes)})
}

// IsLong reports whether the person has said enough for a model to be asked.
func (c Conversation) IsLong() bool { return c.said >= minSaid }

// Request returns the request that asks a model for the facts in a conversation. owner says that the person owns the
// bot, and so may also decide about the agent's memory. The model reads only the newest part of a conversation with
// more than maxReadBytes bytes.
func (c Conversation) Request(known Known, owner bool) llm.Request {
	var b strings.Builder
	from, size := len(c.lines), 0
	for from > 0 && size+len(c.lines[from-1].text) <= maxReadBytes {
		from--
		size += len(c.lines[from].text)
	}
	for _, l := range c.lines[from:] {
		writeFrame(&b, l.tag, "", l.text)
	}
	if !known.Untrusted {
		writeFrame(&b, frames.Remembered, "the person", beginning(known.OfPerson, maxRemembered))
		writeFrame(&b, frames.Remembered, "all your conversations", beginning(known.OfAgent, maxRemembered))
	}
	writeFrame(&b, frames.Remembered, "what you proposed before", beginning(strings.Join(known.Proposed, "\n"), maxRemembered))
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

// Facts returns the first maxFacts facts that a model's answer proposes. It drops facts that are known already,
// long ones, and facts with secrets, which are those that redact changes. Facts for the agent's memory count only in
// an owner's conversation.
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
		if letters == "" || len(fact.Text) > maxFactBytes || redact(fact.Text) != fact.Text || slices.ContainsFunc(have, func(known string) bool { return strings.Contains(known, letters) }) {
			continue
		}
		if found, have = append(found, fact), append(have, letters); len(found) == maxFacts {
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

// beginning returns at most that many bytes from the beginning of a text, in whole characters.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
