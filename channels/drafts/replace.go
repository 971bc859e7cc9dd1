package drafts

import (
	"context"
	"errors"
	"fmt"

	"parley/bus"
	"parley/channels"
)

// ToReplace returns the platform's id of the draft that a message replaces, which is the draft of its turn at its
// address; "" if there is none. The caller must have blocked the address.
//
// A draft is replaced only if it is still recorded in the book as a draft. What this process remembers is not
// enough: after this process read the drafts, the process that sent for the channel before may have completed a
// send, and so have replaced the draft with another message of the turn, which would now be overwritten.
func (d *Drafts) ToReplace(work context.Context, out bus.Outbound) (string, error) {
	x := d.draftFor(out)
	if x == nil {
		return "", nil
	}
	d.mu.Lock()
	unknown := x.state == draftUnknown
	if out.IsReply() && !unknown {
		x.state = draftClosed
	}
	d.mu.Unlock()
	if unknown {
		d.resolveUnknown(work, x)
	}
	d.mu.Lock()
	id := x.platformID
	d.mu.Unlock()
	if id == "" {
		return "", nil
	}
	known, err := d.conf.Book.Lookup(work, ID(x.turn))
	switch {
	case errors.Is(err, channels.ErrNoSend): // the record was erased, but the draft is still there
		return id, nil
	case err != nil:
		return "", fmt.Errorf("look for the draft of the turn: %w", err)
	case known.Parts[0].State == channels.Drafted:
		return id, nil
	}
	d.update(x, func(x *draft) { x.platformID, x.state = "", draftClosed })
	return "", nil
}

// CloseUnposted keeps the turn of an answer from showing a draft from now on. It returns false if the turn already
// shows one, or may, because the answer must then replace it.
func (d *Drafts) CloseUnposted(out bus.Outbound) bool {
	x := d.draftFor(out)
	if x == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if x.platformID != "" || x.state == draftUnknown || d.callsInProgress[x.key] != nil {
		return false
	}
	x.state = draftClosed
	return true
}

// NoteFinished records that a message of its turn has been completely sent or given up. If a message about a
// subject did not replace the draft, the draft remains for the turn's next message.
func (d *Drafts) NoteFinished(work context.Context, out bus.Outbound) {
	if x := d.draftFor(out); x != nil && out.Subject == "" {
		d.mu.Lock()
		id := x.platformID
		d.mu.Unlock()
		d.Release(work, out, id)
	}
}

// Release records that a message of its turn has replaced the draft with that platform id, or is about to. If id is
// "", the message is finished without having replaced one.
func (d *Drafts) Release(work context.Context, out bus.Outbound, id string) {
	x := d.draftFor(out)
	if x == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if id != x.platformID { // the message has replaced something else
		return
	}
	if id != "" {
		d.mu.Unlock()
		d.closeDraft(work, x, id)
		d.mu.Lock()
	}
	d.forgetIfDone(x)
}

// draftFor returns the draft of a message's turn, if the draft is at the message's address; otherwise nil.
func (d *Drafts) draftFor(out bus.Outbound) *draft {
	if d == nil || out.Turn == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.turns[out.Turn]; x != nil && x.to == out.To {
		return x
	}
	return nil
}
