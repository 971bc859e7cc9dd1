package openai

import "strings"

// A splitter separates what a model thinks from what it says, for servers that send both
// as one text with the thinking in <think>…</think> at its beginning.
type splitter struct {
	state   splitState
	held    string // the end of the text so far, if it may be part of a tag
	closing string // the tag that ends the thinking
	begun   bool   // something of the thinking was passed on
}

type splitState int

const (
	splitStart  splitState = iota // it is not certain yet whether there is an opening tag
	splitInside                   // between the tags
	splitAfter                    // right after the closing tag: white space is dropped
	splitPlain                    // all the rest is what the model says
)

// add takes the next piece of text. The stream may cut it anywhere, within a tag too.
func (s *splitter) add(text string) (thought, said string) {
	if s.state == splitStart {
		text = s.start(s.held + text)
	}
	if s.state == splitInside {
		thought, text = s.inside(s.held + text)
	}
	if s.state == splitAfter {
		text = strings.TrimLeft(text, " \t\r\n")
		if text != "" {
			s.state = splitPlain
		}
	}
	return thought, text
}

// start waits until it is certain whether there is an opening tag.
func (s *splitter) start(text string) string {
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

// inside passes thinking on, but for what may be the beginning of the closing tag.
func (s *splitter) inside(text string) (thought, rest string) {
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

// rest is what add held back and the end of the text sets free.
func (s *splitter) rest() (thought, said string) {
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
