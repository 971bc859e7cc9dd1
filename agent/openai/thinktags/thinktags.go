// Package thinktags separates a model's thinking from what it says if its server sends both as one text.
//
// thinktags.go has the Splitter; harmony.go reads the channels of OpenAI's open models.
package thinktags

import (
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

const (
	whiteSpace = " \t\r\n" // the white space around tags
	// maxSpokenTags limits how many closing tags that don't end any thinking are examined. A text with more of them
	// is about tags.
	maxSpokenTags = 32
	// maxPadding is how many spaces may be between a bare closing tag and the end of its line.
	maxPadding = 16
)

// A Splitter separates a model's thinking from what it says. Servers that send both as one text put the
// thinking at its beginning, between two tags or in channels of its own. With some models, the template
// contains the opening tag, so that only the closing tag is in the text (a bare one): then everything before it
// was thinking.
type Splitter struct {
	state       splitState
	heldBack    string          // the end of the text so far, if it may be part of a tag
	closingTag  string          // the tag that ends the thinking
	begun       bool            // some of the thinking has been returned
	assumed     bool            // the text is assumed to begin with thinking, although no opening tag came
	thought     strings.Builder // the thinking so far, if assumed
	endsIfLast  bool            // heldBack begins with a bare tag that ends the thinking if nothing follows it
	startedBare bool            // a text without an opening tag has turned out to begin with thinking
	spokenTags  int             // number of closing tags that did not end any thinking, because the text is about tags
	harmony     harmony
}

// Parts are what a piece of text adds to the thinking and to what is said.
type Parts struct {
	Thought, Said string
	// Thinking says that everything that earlier pieces returned as said was thinking.
	Thinking bool
	// Speech says that everything that earlier pieces returned as thinking was said.
	Speech bool
}

// A splitState is the place in the text that a Splitter has reached.
type splitState int

const (
	splitStart   splitState = iota // it is not clear yet whether there is an opening tag
	splitInside                    // between the tags
	splitAfter                     // right after the closing tag: white space is dropped
	splitPlain                     // outside of the thinking: the model speaks, unless a bare closing tag follows
	splitHarmony                   // in channels
	splitClosed                    // the thinking is over for good
)

// tagPairs returns the tags with which models begin and end their thinking.
func tagPairs() [][2]string {
	return [][2]string{
		{"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"<thought>", "</thought>"}, {"<reasoning>", "</reasoning>"},
		{"<seed:think>", "</seed:think>"}, {"[THINK]", "[/THINK]"}, {"◁think▷", "◁/think▷"}, {"<|START_THINKING|>", "<|END_THINKING|>"},
	}
}

// bareEnds returns the closing tags of thinking whose opening tag is in a model's template.
func bareEnds() []string {
	return []string{"</think>", "</thinking>", "</thought>", "</seed:think>", afterThought, finalChannel}
}

// Assume makes the Splitter treat the beginning of a text as thinking that a bare tag will end, because this
// model has begun texts that way before. If no such tag comes, Flush says that it wasn't thinking.
func (s *Splitter) Assume() { s.assumed = s.state == splitStart }

// CancelAssume undoes Assume, because the thinking arrives separately from the text.
func (s *Splitter) CancelAssume() {
	if s.state == splitStart {
		s.assumed = false
	}
}

// A Habit remembers whether a model's texts begin with thinking without an opening tag. The zero Habit has seen
// none. It is safe for concurrent use.
type Habit struct {
	bareInARow atomic.Int32 // how many of the newest texts in a row did, up to enoughBare
}

// enoughBare is how many texts make a habit: a single one may have been about tags.
const enoughBare = 2

// Holds reports whether the next text is likely to begin with thinking.
func (h *Habit) Holds() bool { return h.bareInARow.Load() >= enoughBare }

// Note learns from a text that a Splitter has split. rest is what Flush returned.
func (h *Habit) Note(s *Splitter, rest Parts) {
	before := h.bareInARow.Load()
	switch {
	case s.startedBare && before < enoughBare:
		h.bareInARow.CompareAndSwap(before, before+1)
	case rest.Speech, !s.startedBare && before < enoughBare:
		h.bareInARow.Store(0)
	}
}

// LostCall reports whether the text contained a tool call that its server did not recognize.
func (s *Splitter) LostCall() bool { return s.harmony.hasToolCall }

// Add splits the next piece of text. The stream may be cut anywhere, even within a tag. said is what the model
// has said so far.
func (s *Splitter) Add(text string, said *strings.Builder) (p Parts) {
	if s.state == splitStart {
		text = s.awaitOpeningTag(s.heldBack + text)
	}
	if s.state == splitInside {
		p.Thought, text = s.splitThinking(s.heldBack + text)
	}
	if s.state == splitHarmony {
		thought, said := s.splitHarmony(text)
		p.Thought, p.Said = p.Thought+thought, said
		return p
	}
	if s.state == splitPlain {
		text = s.awaitBareEnd(text, said, &p)
	}
	if s.state == splitAfter {
		text = strings.TrimLeft(text, whiteSpace)
		if text != "" {
			s.state = splitClosed
		}
	}
	p.Said += text
	return p
}

// awaitOpeningTag looks for an opening tag, and returns the text that is certain. It holds the text back as
// long as that may still be the beginning of a tag.
func (s *Splitter) awaitOpeningTag(text string) string {
	s.heldBack = ""
	first := strings.TrimLeft(text, whiteSpace)
	for _, tags := range tagPairs() {
		opening := tags[0]
		if rest, ok := strings.CutPrefix(first, opening); ok {
			s.state, s.closingTag, s.assumed = splitInside, tags[1], false
			return rest
		}
		if strings.HasPrefix(opening, first) {
			s.heldBack = text
		}
	}
	for _, opening := range []string{startToken, channelToken} {
		if strings.HasPrefix(first, opening) {
			s.state = splitHarmony
			return first
		}
		if strings.HasPrefix(opening, first) {
			s.heldBack = text
		}
	}
	if s.heldBack != "" || first == "" {
		s.heldBack = text
		return ""
	}
	s.state = splitPlain
	if s.assumed {
		s.state, s.closingTag = splitInside, "</think>"
	}
	return text
}

// splitThinking returns the thinking in text, and the rest after the closing tag. It holds back an end that may
// be the beginning of the closing tag.
func (s *Splitter) splitThinking(text string) (thought, rest string) {
	s.heldBack = ""
	if s.assumed {
		thought, rest = s.splitAssumed(text)
	} else {
		var closed bool
		if thought, rest, closed = strings.Cut(text, s.closingTag); closed {
			s.state = splitAfter
		} else {
			thought = s.holdBack(thought, []string{s.closingTag})
		}
	}
	if !s.begun {
		thought = strings.TrimLeft(thought, whiteSpace)
		s.begun = thought != ""
	}
	return thought, rest
}

// splitAssumed does the same as splitThinking for thinking without an opening tag.
func (s *Splitter) splitAssumed(text string) (thought, rest string) {
	at, tag, certain := s.findBareEnd(text, &s.thought)
	if !certain {
		thought = s.holdFrom(text, at)
		s.thought.WriteString(thought)
		return thought, ""
	}
	s.startedBare = true
	s.endAt(tag)
	return text[:at], text[at+len(tag):]
}

// awaitBareEnd returns what is said in a text that had no opening tag. If a bare closing tag ends thinking,
// everything before it was thinking.
func (s *Splitter) awaitBareEnd(text string, said *strings.Builder, p *Parts) string {
	text, s.heldBack = s.heldBack+text, ""
	at, tag, certain := s.findBareEnd(text, said)
	if !certain {
		return s.holdFrom(text, at)
	}
	p.Thinking, p.Thought, s.startedBare = true, text[:at], true
	rest := text[at+len(tag):]
	if s.endAt(tag); s.state == splitHarmony {
		thought, final := s.splitHarmony(rest)
		p.Thought, p.Said = p.Thought+thought, final
		return ""
	}
	return rest
}

// findBareEnd returns the position of a closing tag in a text that ends thinking without an opening tag, and
// the tag. If certain is false, that depends on what follows; at is -1 if there is no such tag. before is the
// text before this one.
func (s *Splitter) findBareEnd(text string, before *strings.Builder) (at int, tag string, certain bool) {
	for from := 0; s.spokenTags <= maxSpokenTags; from = at + len(tag) {
		if at, tag = firstOf(text[from:], bareEnds()); at < 0 {
			return at, "", false
		}
		at += from
		switch judgeTag(before.String()+text[:at], tag, text[at+len(tag):]) {
		case endsThinking:
			return at, tag, true
		case endsAtEnd:
			s.endsIfLast = true
			return at, tag, false
		case mayEnd:
			s.endsIfLast = false
			return at, tag, false
		}
		s.spokenTags++
	}
	return -1, "", false
}

// holdFrom returns the text before a tag, and holds the rest back for the next piece; without a tag, it holds
// back what may be the beginning of one.
func (s *Splitter) holdFrom(text string, at int) string {
	if at < 0 {
		return s.holdBack(text, bareEnds())
	}
	s.heldBack = text[at:]
	return text[:at]
}

// holdBack returns a text without an end that may be the beginning of one of these tags, and holds that end
// back for the next piece.
func (s *Splitter) holdBack(text string, tags []string) string {
	keep := bytesToHold(text, tags)
	s.heldBack = text[len(text)-keep:]
	return text[:len(text)-keep]
}

// endAt enters the state after a tag that has ended the thinking.
func (s *Splitter) endAt(tag string) {
	s.state = splitAfter
	if strings.HasSuffix(tag, finalChannel) {
		s.state, s.harmony.place, s.harmony.reader = splitHarmony, inBody, forPeople
	}
}

// A verdict says whether a closing tag ends thinking without an opening tag.
type verdict int

const (
	aboutTag     verdict = iota // it doesn't: the text is about the tag
	endsThinking                // it does
	endsAtEnd                   // it does if nothing follows; otherwise that depends on what follows
	mayEnd                      // it doesn't if nothing follows; otherwise that depends on what follows
)

// judgeTag decides whether a closing tag between these texts ends thinking without an opening tag. It doesn't if
// the text is only about tags: then there is an opening tag before it, or quotes around it, or it is in code,
// or within a sentence. Templates write the tag on a line of its own or at the end of a line; models that were
// trained without line breaks write it between two words without any space.
func judgeTag(before, tag, after string) verdict {
	opening := strings.Replace(tag, "</", "<", 1)
	line := before[strings.LastIndexByte(before, '\n')+1:]
	quoted := strings.HasSuffix(before, "`") || strings.HasSuffix(before, `"`) || strings.HasSuffix(before, "'") || strings.HasSuffix(before, "“")
	switch {
	case quoted, strings.Count(before, "```")%2 == 1, strings.Count(line, "`")%2 == 1, opening != tag && strings.Count(before, opening) > strings.Count(before, tag):
		return aboutTag
	case opening == tag, strings.Trim(line, whiteSpace) == "": // opening == tag: a channel's tokens
		return endsThinking
	}
	beside := !strings.HasSuffix(line, " ") && !strings.HasSuffix(line, "\t")
	next := strings.TrimLeft(after, " \t")
	switch {
	case next == "" && len(after) <= maxPadding, next == after && !utf8.FullRuneInString(next):
		if beside {
			return endsAtEnd
		}
		return mayEnd
	case strings.HasPrefix(next, "\n"), strings.HasPrefix(next, "\r"), beside && next == after && mayBeginText(after):
		return endsThinking
	}
	return aboutTag
}

// mayBeginText reports whether a text may be the beginning of what is said, and not the rest of a sentence.
func mayBeginText(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return !unicode.IsSpace(first) && !strings.ContainsRune(",.;:!?)]}'\"`’”»…", first)
}

// firstOf returns the position of the first of these tags in a text, and the tag; -1 if there is none.
func firstOf(text string, tags []string) (at int, tag string) {
	at = -1
	if !strings.ContainsAny(text, "<[◁") {
		return at, ""
	}
	for _, t := range tags {
		if n := strings.Index(text, t); n >= 0 && (at < 0 || n < at) {
			at, tag = n, t
		}
	}
	return at, tag
}

// bytesToHold returns how many bytes at the end of a text may be the beginning of one of these tags.
func bytesToHold(text string, tags []string) int {
	longest := 0
	for _, t := range tags {
		longest = max(longest, len(t))
	}
	if !strings.ContainsAny(text[max(0, len(text)-longest):], "<[◁") {
		return 0
	}
	for n := min(longest-1, len(text)); n > 0; n-- {
		end := text[len(text)-n:]
		if slices.ContainsFunc(tags, func(t string) bool { return len(t) > n && strings.HasPrefix(t, end) }) {
			return n
		}
	}
	return 0
}

// Flush returns, at the end of the text, what Add has held back. called says that the model has called tools. It
// says that thinking that was only assumed was said, unless the model has called tools.
func (s *Splitter) Flush(called bool) (p Parts) {
	held := s.heldBack
	s.heldBack = ""
	if at, tag := firstOf(held, bareEnds()); at == 0 && s.endsIfLast && (s.state == splitPlain || s.state == splitInside && s.assumed) {
		p.Thinking, p.Said = s.state == splitPlain, strings.TrimLeft(held[len(tag):], whiteSpace)
		s.state, s.startedBare = splitClosed, true
		return p
	}
	switch {
	case s.state == splitHarmony:
		p.Thought, p.Said = s.harmony.flush(held)
		return p
	case s.state == splitInside && s.assumed && !called:
		p.Speech, p.Said, s.state = true, held, splitClosed
		return p
	case s.state == splitInside:
		p.Thought = held
		return p
	case strings.TrimSpace(held) == "":
		return p
	}
	p.Said = held
	return p
}
