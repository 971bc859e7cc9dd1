// Package occasion says for whom a turn begins though nobody speaks: what is due, what has ended, what programs post.
//
// Each of these publishes mail that begins a turn, and each judges anew for whom: a person
// may have lost their rights since, and a chat may have others in it. What a turn may see
// of its person is decided here alone, and a source of turns that decides nothing shows
// nothing.
package occasion

import (
	"context"

	"parley/bus"
)

// A Caller is for whom a turn begins, with the rights that they have now.
type Caller struct {
	Person bus.Person
	// Program says that it is none, but what programs post, or the heartbeat.
	Program bool
	// Private says that nobody but the person reads along.
	Private bool
}

// Program is the Caller of a program, which owns nothing and of which nothing is remembered.
func Program(id string) Caller { return Caller{Person: bus.Person{ID: id}, Program: true} }

// An Admit judges whether turns may begin for somebody at an address now; false if not. An
// error says that nobody knows now.
type Admit func(ctx context.Context, who bus.Person, at bus.Address) (Caller, bool, error)

// Mail is what begins a turn for the caller, of which in says all but for whom it is.
func (c Caller) Mail(in bus.Inbound) bus.Inbound {
	in.From, in.Private, in.Group, in.Mentioned = c.Person, c.Private, !c.Private, true
	return in
}
