package sqlitebus

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"parley/bus"
)

// A lease is only in memory, because no other process can have the file open.
type lease struct {
	mailboxes   *mailboxes
	box         *box
	claim       bus.Claim
	recordFirst bool  // whether the claim has to be durable before anybody works on it; copied from the box when this was claimed
	firstSeq    int64 // the number of the mailbox's first message when this was claimed; 0 if it was not in memory
	lost        chan struct{}

	settling    sync.Mutex  // held while the lease is being settled
	settlingNow atomic.Bool // whether the lease is being settled; for recordClaim, which must not wait for settling

	// The scheduler's lock guards the following fields.
	endReason error // why the lease is over; nil while it is held
	seenSeq   int64 // the highest number that Mail has returned

	bell bus.Bell // rings when mail comes, and when the lease ends
}

// Claim implements bus.Lease: it returns the mailbox and the fence.
func (l *lease) Claim() bus.Claim { return l.claim }

// Lost implements bus.Lease: the channel is closed once the lease is lost.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// Held implements bus.Lease: it returns at once, because this process always knows whether it holds
// the lease.
func (l *lease) Held(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := l.mailboxes.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.endReason
}

// OnMail implements bus.Lease: f is called when a message becomes visible in the mailbox, and when
// the lease ends.
func (l *lease) OnMail(f func()) (stop func()) {
	s := l.mailboxes.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	stop = l.bell.Listen(f)
	if l.endReason != nil || l.box.mail.lastSeq > l.seenSeq {
		l.bell.Ring()
	}
	return stop
}

// Mail implements bus.Lease: it returns messages from memory or from disk. It returns a long backlog
// in parts.
func (l *lease) Mail(ctx context.Context, after int64) ([]bus.Message, error) {
	out, last, err := l.knownMail(after)
	if err != nil || len(out) > 0 || last <= after {
		return out, err
	}
	page, err := l.mailboxes.readPage(ctx, l.claim, after, last)
	if err != nil {
		return nil, fmt.Errorf("read mail: %w", err)
	}
	return l.returnPage(page, after)
}

// knownMail returns the messages after that number that are in memory, and the highest number in the
// mailbox. If it returns no message and last is greater than after, Mail has to read the messages
// between them from disk.
func (l *lease) knownMail(after int64) (out []bus.Message, last int64, err error) {
	s := l.mailboxes.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.endReason != nil {
		return nil, 0, l.endReason
	}
	m := &l.box.mail
	if out = m.messagesAfter(after); len(out) > 0 {
		l.seenSeq = max(l.seenSeq, out[len(out)-1].Seq)
	}
	return out, m.lastSeq, nil
}

// returnPage returns a page that was read from disk, if the lease is still held.
func (l *lease) returnPage(page []publishedMessage, after int64) ([]bus.Message, error) {
	s := l.mailboxes.sched
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.endReason != nil {
		return nil, l.endReason
	}
	if len(page) == 0 {
		return nil, fmt.Errorf("read mail: mailbox %s has lost its rows", l.claim.Key)
	}
	l.seenSeq = max(l.seenSeq, page[len(page)-1].Seq)
	out := cloneMessages(page)
	if after == 0 {
		l.box.mail.fill(page, &s.budget)
	}
	return out, nil
}

// Settle implements bus.Lease: it removes the settled messages in one transaction, and then frees the mailbox. If
// that empties the mailbox, Settle does not wait for the disk: messages that a crash brings back were handled, and
// the next handler finds that out, as after a crash right before Settle.
func (l *lease) Settle(ctx context.Context, end bus.End) error {
	l.settling.Lock()
	defer l.settling.Unlock()
	l.settlingNow.Store(true)
	s := l.mailboxes.sched
	st, err := s.beginSettle(l, end)
	if err != nil {
		l.settlingNow.Store(false)
		return err
	}
	if !st.empties { // otherwise the claim need not be recorded anymore
		defer l.settlingNow.Store(false)
	}
	if st.empties {
		l.mailboxes.deleteSoon(st)
	} else if err := l.mailboxes.db.Write(ctx, st.write); err != nil {
		if over := s.undoBeginSettle(l); over != nil {
			return over
		}
		return fmt.Errorf("settle: %w", asClosed(err))
	}
	if firstInMemory := s.removeSettled(l, st); !firstInMemory {
		l.mailboxes.findFirst(l.box, st)
	}
	s.finishSettle(l, st)
	if end.Dead > end.Done {
		l.mailboxes.news.Emit(bus.NewDeadLetterEvent(l.claim.Topic, l.claim.Key, "", bus.StateBuried))
	}
	return nil
}
