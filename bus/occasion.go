package bus

import "context"

// This file decides for whom a turn begins if it is not a person's message that begins it, but a schedule
// that is due, a job that has ended or a program that posts.
//
// Each such source publishes mail that begins a turn, and each checks again for whom: a person may have
// lost their rights since, and others may have joined the chat. Only this file decides which of the
// person's memories a turn may see. If a source does not decide, the turn sees none of them.

// A Caller is the person for whom a turn begins, with the rights that they have now.
type Caller struct {
	Person Person
	// Program says that the caller is not a person but a program that posts, or the
	// heartbeat.
	Program bool
	// Private says that nobody but the person can read the conversation.
	Private bool
}

// Program returns the Caller for a program with that id. A program has no owner's rights, and
// nothing is remembered about it between conversations.
func Program(id string) Caller { return Caller{Person: Person{ID: id}, Program: true} }

// An Admit decides whether turns may begin on somebody's behalf, at an address, now. It returns
// the person with the rights that they have; false if no turn may begin. An error says that this
// cannot be decided now.
type Admit func(ctx context.Context, who Person, at Address) (Caller, bool, error)

// Mail returns the message that begins a turn for the caller: in, with the fields that say for whom the
// turn is.
func (c Caller) Mail(in Inbound) Inbound {
	in.From, in.Private, in.Group, in.Mentioned = c.Person, c.Private, !c.Private, true
	return in
}
