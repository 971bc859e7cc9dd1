package thinktags

import "strings"

// The tokens between the channels of OpenAI's open models: a message is written as
// <|start|>ROLE<|channel|>CHANNEL<|message|>TEXT<|end|>. A server that does not know them sends
// them as text. The first message may lack what the model's template has written of it.
const (
	startToken   = "<|start|>"
	channelToken = "<|channel|>"
	bodyToken    = "<|message|>"
	// finalChannel begins what the model says.
	finalChannel = channelToken + "final" + bodyToken
	// afterThought is that after the end of the thinking.
	afterThought = "<|end|>" + startToken + "assistant" + finalChannel
)

// tokens returns all tokens that a text in channels may hold.
func tokens() []string {
	return []string{startToken, channelToken, bodyToken, "<|end|>", "<|return|>", "<|call|>", "<|constrain|>"}
}

// harmony is the place in a text with channels.
type harmony struct {
	where  harmonyPlace
	header string // of the message that begins
	role   channel
	call   bool // a message was a call of a tool
}

// A harmonyPlace is the part of a message.
type harmonyPlace int

const (
	inHeader harmonyPlace = iota
	inBody
)

// A channel says for whom a message is.
type channel int

const (
	channelAnalysis channel = iota // nobody: the model thinks, or calls a tool
	channelFinal                   // people
)

// maxHeader bounds how much of a header is looked at.
const maxHeader = 512

// splitHarmony splits a text in channels. It holds back an end that may be the beginning of a token.
func (s *Splitter) splitHarmony(text string) (thought, said string) {
	text, s.held = s.held+text, ""
	for {
		at, token := firstOf(text, tokens())
		if at < 0 {
			s.harmony.take(s.holdBack(text, tokens()), &thought, &said)
			return thought, said
		}
		s.harmony.take(text[:at], &thought, &said)
		s.harmony.pass(token)
		text = text[at+len(token):]
	}
}

// take adds a text without tokens to the header, the thinking, or what is said.
func (h *harmony) take(text string, thought, said *string) {
	switch {
	case h.where == inHeader:
		h.header += text[:min(len(text), maxHeader-min(len(h.header), maxHeader))]
	case h.role == channelFinal:
		*said += text
	default:
		*thought += text
	}
}

// pass goes on after a token.
func (h *harmony) pass(token string) {
	switch token {
	case bodyToken:
		if h.where == inBody {
			return
		}
		h.where, h.role = inBody, channelAnalysis
		_, name, _ := strings.Cut(h.header, channelToken)
		calls := strings.Contains(h.header, " to=")
		h.call = h.call || calls
		if name = strings.TrimSpace(name); !calls && !strings.HasPrefix(name, "analysis") {
			h.role = channelFinal // what it says before it calls a tool is for people, too
		}
	case channelToken, "<|constrain|>":
		if h.where == inBody { // the end of the message was lost
			h.header = ""
		}
		h.where = inHeader
		h.header += token
	default: // the message has ended, or another begins
		h.where, h.header = inHeader, ""
	}
}

// flush returns what the text ends with; a header without a message is nothing.
func (h *harmony) flush(held string) (thought, said string) {
	if h.where == inHeader {
		return "", ""
	}
	h.take(held, &thought, &said)
	return thought, said
}
