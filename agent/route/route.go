// Package route says where the replies of a turn go, and who can read them.
package route

import (
	"encoding/json"
	"time"

	"parley/bus"
	"parley/tools/plainjson"
)

// A Route says where the replies of a turn go, in the form that the log keeps.
type Route struct {
	At      bus.Address `json:"at"`
	ReplyTo string      `json:"reply_to,omitempty"` // the message to reply to; "" for none
	Owner   bool        `json:"owner,omitempty"`    // the sender is an owner of the bot
	Group   bool        `json:"group,omitempty"`    // several people read the conversation
	Private *bool       `json:"private,omitempty"`  // nil in logs of older releases
	// Asked is set for a sub-agent: it is where the people are who may be asked.
	Asked *bus.Address `json:"asked,omitempty"`
	// Received is bus.Inbound.Received.
	Received time.Time `json:"received,omitzero"`
}

// Of returns the route for the reply to a message. It names the message to reply to only in a group.
func Of(in bus.Inbound) Route {
	r := Route{At: in.At, Owner: in.From.Owner, Group: in.Group, Private: &in.Private, Received: in.Received}
	if in.Group {
		r.ReplyTo = in.ReplyTo
	}
	if in.Kind == bus.Tasked {
		r.Asked = &in.Task.Asked
	}
	return r
}

// People returns the address of the people that the turn runs for.
func (r Route) People() bus.Address {
	if r.Asked != nil {
		return *r.Asked
	}
	return r.At
}

// IsPrivate reports whether the turn may see what is remembered about its person, because nobody else reads the
// conversation.
func (r Route) IsPrivate() bool { return bus.IsPrivate(r.Private, r.Group) }

// Encode returns the route as JSON, for the log.
func (r Route) Encode() json.RawMessage {
	raw, err := plainjson.Marshal(r)
	if err != nil { // its fields always marshal
		panic(err)
	}
	return raw
}
