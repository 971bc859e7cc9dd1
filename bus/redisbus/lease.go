package redisbus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/bus"
)

// A lease implements bus.Lease, and caches what this process knows of the leased mailbox.
type lease struct {
	leases     *leases
	keys       *topicKeys
	claim      bus.Claim
	maxHoldEnd time.Time     // when MaxHold is over, beyond which the lease is not extended
	lost       chan struct{} // closed once it is lost
	settling   chan struct{} // has a value while Settle runs

	mu        sync.Mutex // guards all fields below
	term      grantedTime
	endReason error         // why the lease is over; nil while it is not known to be
	changed   chan struct{} // closed at the next change; nil if nobody waits for one
	cached    cachedMailbox
	group     string // the group for which the lease is counted, or may be if the outcome of a call is unknown; "" for none

	bell bus.Bell // rings when there is mail that Mail has not returned, and when the lease ends
}

// A cachedMailbox is what this process knows of a mailbox that it has leased.
type cachedMailbox struct {
	page     []bus.Message // the messages that came with the claim, until Mail returns them
	lastSeq  int64         // the highest number in the mailbox
	seenSeq  int64         // the highest number that Mail has returned
	settling bool          // whether Settle runs, which may itself be why the server refuses the fence
}

// A grantedTime is the time for which the server granted a lease, counted from the request:
// so it ends before the server's own count does.
type grantedTime struct {
	asked  time.Time
	length time.Duration
}

// isRunning reports whether the granted time has not run out yet; a tenth of it is left as a
// margin. It looks at both of Go's clocks: the monotonic one stands still while the machine sleeps,
// the other can be set.
func (t grantedTime) isRunning() bool {
	now := time.Now()
	elapsed := max(now.Sub(t.asked), now.Round(0).Sub(t.asked.Round(0)))
	return elapsed < t.length-t.length/10
}

// Claim implements bus.Lease: it returns the mailbox and the fence.
func (l *lease) Claim() bus.Claim { return l.claim }

// Lost implements bus.Lease: the channel is closed once the lease is lost.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// wakeWaiters wakes the callers of Held and Mail because something has changed, and rings the bell if
// that is due. The caller of wakeWaiters, ringIfDue or nextChange holds l.mu.
func (l *lease) wakeWaiters() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	l.ringIfDue()
}

// ringIfDue rings the bell if there is mail that Mail has not returned, or the lease is over.
func (l *lease) ringIfDue() {
	if l.endReason != nil || l.cached.lastSeq > l.cached.seenSeq {
		l.bell.Ring()
	}
}

// OnMail implements bus.Lease: f is called when a note or an extension announces a message, and when the
// lease ends.
func (l *lease) OnMail(f func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stop = l.bell.Listen(f)
	l.ringIfDue()
	return stop
}

// nextChange returns a channel that wakeWaiters closes.
func (l *lease) nextChange() <-chan struct{} {
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// Held implements bus.Lease: while it is unknown whether the lease is held, it has the
// lease extended and waits.
func (l *lease) Held(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.mu.Lock()
		if l.endReason != nil || l.term.isRunning() {
			defer l.mu.Unlock()
			return l.endReason
		}
		news := l.nextChange()
		l.mu.Unlock()
		l.leases.extendNow() // nobody knows whether the lease is held: extend it, and wait for the outcome
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// Mail implements bus.Lease: it returns cached messages, or asks the server for more until it
// answers. It returns a long backlog in parts.
func (l *lease) Mail(ctx context.Context, after int64) ([]bus.Message, error) {
	var retry backoff
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		page, news, err := l.cachedMail(after)
		if err != nil || news == nil {
			return page, err
		}
		page, again, err := l.messagesAfter(ctx, after)
		if !again || errors.Is(err, errMalformed) {
			return page, err
		}
		select {
		case <-news:
		case <-time.After(retry.next()):
		case <-ctx.Done():
		}
	}
}

// cachedMail returns the cached messages whose numbers are greater than after. If the cache has none
// of them and Redis has, cachedMail also returns a channel that is closed at the next change, such
// as the end of the lease. The error is why the lease is over.
func (l *lease) cachedMail(after int64) (page []bus.Message, news <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endReason != nil {
		return nil, nil, l.endReason
	}
	k := &l.cached
	if k.lastSeq <= after {
		return nil, nil, nil
	}
	if l.term.isRunning() {
		page, k.page = k.page, nil // the caller may change them
	}
	for len(page) > 0 && page[0].Seq <= after {
		page = page[1:]
	}
	if len(page) == 0 {
		return nil, l.nextChange(), nil
	}
	k.markSeen(page)
	return page, nil, nil
}

// markSeen records that Mail returns these messages to the holder.
func (k *cachedMailbox) markSeen(page []bus.Message) {
	if len(page) > 0 {
		k.seenSeq = max(k.seenSeq, page[len(page)-1].Seq)
	}
}

// messagesAfter asks the server for the messages after that number. There may be none although the lease
// was told of some: a server that has failed over may have lost them. again is true if there is no answer
// to rely on: after an error, or if messages are missing that the mailbox counts, which repair fixes, or
// if the server refuses the lease's fence, in which case messagesAfter ends the lease.
func (l *lease) messagesAfter(ctx context.Context, after int64) (page []bus.Message, again bool, err error) {
	c := l.claim
	r, err := l.leases.batcher.run(ctx, readScript, []string{l.keys.state, l.keys.heads, l.keys.mail(c.Key)}, c.Key, c.Fence, after)
	if err != nil {
		return nil, true, err
	}
	if len(r.list()) == 0 {
		l.handleRefusal()
		return nil, true, nil
	}
	page, err = r.at(2).messages(c.Key, r.at(0).number())
	if err != nil {
		return nil, true, fmt.Errorf("read mail: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endReason != nil {
		return nil, true, nil
	}
	last := r.at(1).number()
	l.cached.lastSeq = max(l.cached.lastSeq, last)
	l.cached.markSeen(page)
	return page, len(page) == 0 && last > after, nil
}

// recordExtension records a new term and the number of the last message.
func (l *lease) recordExtension(t grantedTime, last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endReason == nil {
		l.term = t
		l.cached.lastSeq = max(l.cached.lastSeq, last)
		l.wakeWaiters()
	}
}

// recordMessage records that the mailbox has a new message, with that number.
func (l *lease) recordMessage(last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cached.lastSeq = max(l.cached.lastSeq, last)
	l.wakeWaiters()
}

// handleRefusal ends the lease because the server refused its fence. While Settle runs it does
// nothing: Settle may have ended the lease itself, and knows what to report.
func (l *lease) handleRefusal() {
	l.mu.Lock()
	busy := l.cached.settling
	l.mu.Unlock()
	if !busy {
		l.leases.lose(l, bus.ErrFenced)
	}
}

// Settle implements bus.Lease: it runs the settle script, again and again until it knows the outcome or
// ctx ends. If an answer was lost and the next attempt is fenced, the lost attempt has settled the
// lease: only Settle ends a lease that this process still extends, or Forget, after which mail that was
// not settled comes again. If ctx ends first, the lease is no longer extended and runs out.
func (l *lease) Settle(ctx context.Context, end bus.End) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.settling <- struct{}{}: // one Settle at a time
		defer func() { <-l.settling }()
	case <-ctx.Done():
		return ctx.Err()
	}
	seen, err := l.beginSettle()
	if err != nil {
		return err
	}
	defer l.endSettle()
	keys, args := l.settleCall(end, seen)
	var retry backoff
	for unsure := false; ; {
		r, err := l.leases.batcher.run(ctx, settleScript, keys, args...)
		if err == nil {
			if r.text() == "fenced" && !unsure {
				l.leases.lose(l, bus.ErrFenced)
				return bus.ErrFenced
			}
			l.leases.endLease(l, bus.ErrFenced)
			if r.text() == "offered" {
				l.leases.onOffer(l.claim.Topic, l.claim.Key)
			}
			if end.Dead > end.Done {
				l.leases.emitter.Emit(bus.NewDeadLetterEvent(l.claim.Topic, l.claim.Key, "", bus.StateBuried))
			}
			return nil
		}
		// From here on a fenced answer may be the result of an earlier attempt of ours.
		unsure = unsure || mayHaveRun(err)
		select {
		case <-time.After(retry.next()):
		case <-ctx.Done():
			// The holder is done with the lease. If it were extended further, nobody
			// could claim the mailbox; so it runs out.
			l.leases.endLease(l, bus.ErrFenced)
			return fmt.Errorf("settle: %w", err)
		case <-l.leases.closed:
			return fmt.Errorf("settle: %w", bus.ErrClosed)
		}
	}
}

// GiveBack ends the lease before its holder has begun to work, and puts the mailbox at the front of the line. The claim
// does not count as an attempt.
func (l *lease) GiveBack() {
	l.leases.spawnOrRun(func() { l.leases.giveBack(l.keys, []*lease{l}) })
}

// settleCall returns the keys and arguments with which the settle script runs. seen is the highest number that the holder
// has seen.
func (l *lease) settleCall(end bus.End, seen int64) (keys []string, args []any) {
	k, keep := l.keys, int64(0)
	if k.remembersLast() {
		keep = rememberLast.Milliseconds()
	}
	keys = []string{
		l.leases.keys.clock(), k.state, k.due, k.leased, k.wake, k.heads, k.mail(l.claim.Key), k.dead, k.graves,
		k.lastHolder(l.claim.Key),
	}
	return keys, []any{
		l.claim.Key, l.claim.Fence, end.Done, end.Dead, end.Reason, max(0, end.After.Microseconds()), boolArg(end.Uncounted), seen, keep,
	}
}

// beginSettle records that the lease is being settled, so that a failed extension meanwhile does
// not report the lease as lost. It returns the highest number that the holder has seen; urgent mail
// above it makes the mailbox due at once.
func (l *lease) beginSettle() (seen int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cached.settling = l.endReason == nil
	return l.cached.seenSeq, l.endReason
}

// endSettle records that Settle has ended.
func (l *lease) endSettle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cached.settling = false
}

// Begin implements bus.CountedLease: it counts the lease for a group in one script, all or
// nothing.
func (l *lease) Begin(ctx context.Context, q bus.Quota) error {
	r, err := l.count(ctx, q, l.swapGroup(q.Group))
	if err != nil {
		return fmt.Errorf("count what begins: %w", err)
	}
	switch r.at(0).text() {
	case "busy":
		return bus.ErrBusy
	case "over":
		return &bus.QuotaError{Opens: time.Duration(r.at(1).number()) * time.Microsecond}
	}
	return nil
}

// Resume implements bus.CountedLease: it counts the lease for a group without a bound.
func (l *lease) Resume(ctx context.Context, group string) error {
	if _, err := l.count(ctx, bus.Quota{Group: group}, l.swapGroup(group)); err != nil {
		return fmt.Errorf("count what goes on: %w", err)
	}
	return nil
}

// Leave implements bus.CountedLease: it ends the counting of the lease for its group.
func (l *lease) Leave(ctx context.Context) error {
	last := l.swapGroup("")
	if last == "" {
		return nil
	}
	if _, err := l.count(ctx, bus.Quota{Group: last, AtOnce: -1}, last); err != nil {
		return fmt.Errorf("count no more: %w", err)
	}
	return nil
}

// swapGroup records the group for which the lease is about to be counted, and returns the one for which
// it was counted until now.
func (l *lease) swapGroup(group string) (last string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, l.group = l.group, group
	return last
}

// count runs the begin script. If its outcome is unknown, the same call may be made again.
func (l *lease) count(ctx context.Context, q bus.Quota, last string) (reply, error) {
	if last == "" {
		last = q.Group
	}
	k := l.leases.keys
	keys := []string{k.clock(), l.keys.state, k.workingLeases(q.Group), k.begunIDs(q.Group), k.workingLeases(last)}
	keep := l.leases.maxHold + l.leases.length
	r, err := l.leases.batcher.run(ctx, beginScript, keys, l.claim.Key, l.claim.Fence, q.ID, q.AtOnce, q.Hour, keep.Milliseconds())
	if err == nil && r.at(0).text() == "fenced" {
		l.handleRefusal()
		err = bus.ErrFenced
	}
	return r, err
}
