// Package thinktags separates a model's thinking from what it says where its server sends
// both as one text.
package thinktags

import "strings"

// A Splitter separates a model's thinking from what it says. Some servers send both as
// one text, with the thinking in <think>…</think> at its beginning.
type Splitter struct {
	state   splitState
	held    string // the end of the text so far if it may be part of a tag
	closing string // the tag that ends the thinking
	begun   bool   // some of the thinking was returned
}

// A splitState is the place in the text that a Splitter has reached.
type splitState int

const (
	splitStart  splitState = iota // it is not certain yet whether there is an opening tag
	splitInside                   // between the tags
	splitAfter                    // right after the closing tag: white space is dropped
	splitPlain                    // outside of the thinking for good: everything is what the model says
)

// Add splits the next piece of text. The stream may cut the text anywhere, even within a
// tag.
func (s *Splitter) Add(text string) (thought, said string) {
	if s.state == splitStart {
		text = s.awaitOpeningTag(s.held + text)
	}
	if s.state == splitInside {
		thought, text = s.splitThinking(s.held + text)
	}
	if s.state == splitAfter {
		text = strings.TrimLeft(text, " \t\r\n")
		if text != "" {
			s.state = splitPlain
		}
	}
	return thought, text
}

// awaitOpeningTag looks for an opening tag, and returns the text that is certain. It holds the
// text back while that may still be the beginning of a tag.
func (s *Splitter) awaitOpeningTag(text string) string {
	s.held = ""
	first := strings.TrimLeft(text, " \t\r\n")
	for _, name := range []string{"think", "thinking"} {
		opening := "<" + name + ">"
		if rest, ok := strings.CutPrefix(first, opening); ok {
			s.state, s.closing = splitInside, "</"+name+">"
			return rest
		}
		if strings.HasPrefix(opening, first) {
			s.held = text
		}
	}
	if s.held != "" || first == "" {
		s.held = text
		return ""
	}
	s.state = splitPlain
	return text
}

// splitThinking returns the thinking in text, and the rest after the closing tag. It holds back
// an end that may be the beginning of the closing tag.
func (s *Splitter) splitThinking(text string) (thought, rest string) {
	s.held = ""
	thought, rest, closed := strings.Cut(text, s.closing)
	if closed {
		s.state = splitAfter
	} else {
		keep := 0
		for n := min(len(s.closing)-1, len(thought)); n > 0 && keep == 0; n-- {
			if strings.HasSuffix(thought, s.closing[:n]) {
				keep = n
			}
		}
		thought, s.held = thought[:len(thought)-keep], thought[len(thought)-keep:]
	}
	if !s.begun {
		thought = strings.TrimLeft(thought, " \t\r\n")
		s.begun = thought != ""
	}
	return thought, rest
}

// Flush returns, at the end of the text, what Add has held back.
func (s *Splitter) Flush() (thought, said string) {
	held := s.held
	s.held = ""
	if s.state == splitInside {
		return held, ""
	}
	if strings.TrimSpace(held) == "" {
		return "", ""
	}
	return "", held
}
