package home

import (
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// A ReplyPlanner returns what the book is to record about a turn's answer that is being published,
// if the answer can be sent at once; see dispatch.Dispatcher.PlanReply.
type ReplyPlanner func(topic, id string, body []byte) (channels.Send, bool)

// PlanReplies makes the write that publishes a turn's answer also record in the book that the
// answer is being sent, if plan says so. It must be called before the first session is opened. It
// does nothing if the store, the bus and the book don't share a database.
func (h *Home) PlanReplies(plan ReplyPlanner) {
	if h.shared != nil {
		h.shared.store.PublishBy(replySharer{h.shared.bus, h.Book, plan})
	}
}

// A sharedDatabase holds the parts that share a home's single database with the book.
type sharedDatabase struct {
	store *sqlstore.Store
	bus   sqlstore.Sharer
}

// A replySharer publishes messages in the store's writes, and begins sending those for which plan
// returns a plan.
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

// A begunReply is the publication of an answer together with the beginning of its send.
type begunReply struct {
	published, begun sqldb.Share
	begins           bool // whether the last Write has written both
}

// A storer is a publication that knows whether it has stored its message. It has not if the bus has seen the
// message's id before.
type storer interface{ Stored() bool }

// Write implements sqldb.Share. It begins no send for a message that the bus doesn't store, because
// that message was already published.
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
// must then find its send begun.
func (r *begunReply) End(durable bool) {
	r.begun.End(durable && r.begins)
	r.published.End(durable)
}
