package agent

import "encoding/json"

// A Redactor takes out of what leaves an agent what nobody is to see.
type Redactor interface {
	Text(text string) string
	// JSON gives a JSON value for a JSON value.
	JSON(raw json.RawMessage) json.RawMessage
	// Stream takes one text in pieces, and gives on what is sure to hold no part of a
	// secret; the rest comes with what follows, or with last.
	Stream() func(piece string, last bool) string
}

// redactor is the agent's, or one that takes out nothing.
func (s *session) redactor() Redactor {
	if s.agent.Redact == nil {
		return asItIs{}
	}
	return s.agent.Redact
}

type asItIs struct{}

func (asItIs) Text(text string) string                  { return text }
func (asItIs) JSON(raw json.RawMessage) json.RawMessage { return raw }
func (asItIs) Stream() func(piece string, last bool) string {
	return func(p string, _ bool) string { return p }
}
