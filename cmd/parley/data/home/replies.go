package home

import (
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// A ReplyPlanner returns what the book is to record of a turn's answer that is being published, if
// it can be sent at once; see dispatch.Dispatcher.PlanReply.
type ReplyPlanner func(topic, id string, body []byte) (channels.Send, bool)

// PlanReplies has the answers of turns recorded in the book as being sent in the write that
// publishes them, where plan says what to record. It must be called before the first session is
// opened. It does nothing where store, bus and book do not share a database.
func (h *Home) PlanReplies(plan ReplyPlanner) {
	if h.shared != nil {
		h.shared.store.PublishBy(replySharer{h.shared.bus, h.Book, plan})
	}
}

// A sharedDatabase holds the parts that share a home's one database with the book.
type sharedDatabase struct {
	store *sqlstore.Store
	bus   sqlstore.Sharer
}

// A replySharer publishes messages in the writes of the store, and begins to send those that plan
// plans.
type replySharer struct {
	sqlstore.Sharer
	book *sqlbook.Book
	plan ReplyPlanner
}

// Share returns the publication of a message, with the beginning of its send if there is a plan.
func (s replySharer) Share(topic, key, id string, body []byte) (sqldb.Share, error) {
	published, err := s.Sharer.Share(topic, key, id, body)
	if err != nil {
		return nil, err
	}
	send, ok := s.plan(topic, id, body)
	if !ok {
		return published, nil
	}
	begun, ok := s.book.BeginShare(send)
	if !ok {
		return published, nil
	}
	return &begunReply{published: published, begun: begun}, nil
}

// A begunReply is the publication of an answer, and the beginning of its send.
type begunReply struct {
	published, begun sqldb.Share
	begins           bool // whether the last Write has written both
}

// A storer is a publication that tells whether it has stored its message. It does not if the bus
// has seen the message's id before.
type storer interface{ Stored() bool }

// Write implements sqldb.Share. A message that is not stored is not sent, or was sent already.
func (r *begunReply) Write(tx *sqldb.Tx) (refused, err error) {
	r.begins = false
	if refused, err = r.published.Write(tx); refused != nil || err != nil {
		return refused, err
	}
	if p, ok := r.published.(storer); ok && !p.Stored() {
		return nil, nil
	}
	r.begins = true
	return r.begun.Write(tx)
}

// End implements sqldb.Share. The dispatcher sees the message as soon as its publication ends, and
// must find it begun then.
func (r *begunReply) End(durable bool) {
	r.begun.End(durable && r.begins)
	r.published.End(durable)
}
