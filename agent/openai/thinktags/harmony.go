package thinktags

import "strings"

// The tokens that separate the channels of OpenAI's open models: a message is written as
// <|start|>ROLE<|channel|>CHANNEL<|message|>TEXT<|end|>. A server that doesn't know these tokens sends them as
// text. The first message may lack the beginning that the model's template has written.
const (
	startToken   = "<|start|>"
	channelToken = "<|channel|>"
	bodyToken    = "<|message|>"
	// finalChannel begins what the model says.
	finalChannel = channelToken + "final" + bodyToken
	// afterThought begins what the model says right after the end of the thinking.
	afterThought = "<|end|>" + startToken + "assistant" + finalChannel
)

// tokens returns all tokens that can occur in a text with channels.
func tokens() []string {
	return []string{startToken, channelToken, bodyToken, "<|end|>", "<|return|>", "<|call|>", "<|constrain|>"}
}

// harmony is the current position in a text with channels.
type harmony struct {
	place       harmonyPlace
	header      string // of the current message
	reader      audience
	hasToolCall bool // a message was a tool call
}

// A harmonyPlace is a part of a message.
type harmonyPlace int

const (
	inHeader harmonyPlace = iota
	inBody
)

// An audience is whom the current message is for, according to its channel.
type audience int

const (
	forNobody audience = iota // the model thinks, or calls a tool
	forPeople
)

// maxHeader limits how much of a header is looked at.
const maxHeader = 512

// splitHarmony splits a text with channels. It holds back an end that may be the beginning of a token.
func (s *Splitter) splitHarmony(text string) (thought, said string) {
	text, s.heldBack = s.heldBack+text, ""
	for {
		at, token := firstOf(text, tokens())
		if at < 0 {
			s.harmony.addText(s.holdBack(text, tokens()), &thought, &said)
			return thought, said
		}
		s.harmony.addText(text[:at], &thought, &said)
		s.harmony.handleToken(token)
		text = text[at+len(token):]
	}
}

// addText adds a text without tokens to the header, to the thinking, or to what is said.
func (h *harmony) addText(text string, thought, said *string) {
	switch {
	case h.place == inHeader:
		h.header += text[:min(len(text), maxHeader-min(len(h.header), maxHeader))]
	case h.reader == forPeople:
		*said += text
	default:
		*thought += text
	}
}

// handleToken moves on after a token.
func (h *harmony) handleToken(token string) {
	switch token {
	case bodyToken:
		if h.place == inBody {
			return
		}
		h.place, h.reader = inBody, forNobody
		_, name, _ := strings.Cut(h.header, channelToken)
		calls := strings.Contains(h.header, " to=")
		h.hasToolCall = h.hasToolCall || calls
		if name = strings.TrimSpace(name); !calls && !strings.HasPrefix(name, "analysis") {
			h.reader = forPeople // what it says before it calls a tool is for people, too
		}
	case channelToken, "<|constrain|>":
		if h.place == inBody { // the token at the end of the message was lost
			h.header = ""
		}
		h.place = inHeader
		h.header += token
	default: // the message has ended, or another one begins
		h.place, h.header = inHeader, ""
	}
}

// flush returns the rest of the text. A header without a message is dropped.
func (h *harmony) flush(held string) (thought, said string) {
	if h.place == inHeader {
		return "", ""
	}
	h.addText(held, &thought, &said)
	return thought, said
}
