package redisbus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/bus"
)

// A lease is what this process knows of one that it holds, or held.
type lease struct {
	bus      *Bus
	keys     *topicKeys
	claim    bus.Claim
	until    time.Time     // it may not be held for longer
	lost     chan struct{} // closed once it is lost
	settling chan struct{} // has a value while it is being settled

	mu    sync.Mutex // guards all below
	term  term
	over  error         // why it is over; nil while it is not known to be
	news  chan struct{} // closed when there is news; nil if nobody waits
	known mailbox
}

// mailbox is what is known of a leased mailbox.
type mailbox struct {
	page []bus.Message // the first ones, until somebody reads them
	last int64         // the highest number
	seen int64         // the highest number that Mail has returned
	busy bool          // somebody settles it: to be told that it is lost may mean that it is settled
}

// A term is the time for which something was granted at least.
type term struct {
	asked time.Time
	time  time.Duration
}

// runs says whether it has not run out, with some margin. It asks both clocks:
// one stands still while the machine sleeps, the other can be set.
func (t term) runs() bool {
	now := time.Now()
	elapsed := max(now.Sub(t.asked), now.Round(0).Sub(t.asked.Round(0)))
	return elapsed < t.time-t.time/10
}

// newLease reads what the script claim says of a mailbox that it leased.
func (b *Bus) newLease(d *desk, r reply, sent time.Time) *lease {
	c := bus.Claim{Topic: d.keys.name, Key: r.at(0).text(), Fence: r.at(1).number(), Attempts: int(r.at(2).number())}
	first, count := r.at(3).number(), r.at(4).number()
	l := &lease{
		bus: b, keys: &d.keys, claim: c, until: sent.Add(b.leases.maxHold),
		lost: make(chan struct{}), settling: make(chan struct{}, 1),
		term:  term{sent, min(b.leases.time, b.leases.maxHold)},
		known: mailbox{last: first + count - 1},
	}
	// What cannot be read now is read again, and told, when it is asked for.
	l.known.page, _ = r.at(5).letters(c.Key, first)
	return l
}

// Claim implements bus.Lease.
func (l *lease) Claim() bus.Claim { return l.claim }

// Lost implements bus.Lease.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// ring wakes those who wait for news. It is called with l.mu held, as is wait.
func (l *lease) ring() {
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
}

func (l *lease) wait() <-chan struct{} {
	if l.news == nil {
		l.news = make(chan struct{})
	}
	return l.news
}

// Held implements bus.Lease.
func (l *lease) Held(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.mu.Lock()
		if l.over != nil || l.term.runs() {
			defer l.mu.Unlock()
			return l.over
		}
		news := l.wait()
		l.mu.Unlock()
		l.bus.leases.hurry()
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// Mail implements bus.Lease. Of a long backlog it returns a part.
func (l *lease) Mail(ctx context.Context, after int64) ([]bus.Message, error) {
	var retry backoff
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		page, news, ask, err := l.look(after)
		if err != nil || len(page) > 0 {
			return page, err
		}
		var again <-chan time.Time
		if ask {
			if page, err = l.read(ctx, after); len(page) > 0 {
				return page, nil
			}
			if errors.Is(err, errLetter) {
				return nil, err
			}
			again = time.After(retry.next())
		}
		select {
		case <-news:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// look returns what is at hand beyond after, or what to wait for, and whether
// there is reason to ask the server.
func (l *lease) look(after int64) (page []bus.Message, news <-chan struct{}, ask bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return nil, nil, false, l.over
	}
	runs, k := l.term.runs(), &l.known
	if k.last <= after {
		if !runs {
			l.bus.leases.hurry()
		}
		return nil, l.wait(), false, nil
	}
	if runs {
		page, k.page = k.page, nil // they are the caller's now
	}
	for len(page) > 0 && page[0].Seq <= after {
		page = page[1:]
	}
	k.show(page)
	return page, l.wait(), true, nil
}

// show takes note that letters are handed out.
func (k *mailbox) show(page []bus.Message) {
	if len(page) > 0 {
		k.seen = max(k.seen, page[len(page)-1].Seq)
	}
}

// read asks the server for letters beyond after. It ends the lease if that is lost.
func (l *lease) read(ctx context.Context, after int64) ([]bus.Message, error) {
	c := l.claim
	r, err := l.bus.courier.run(ctx, readScript, []string{l.keys.state, l.keys.heads, l.keys.mail(c.Key)}, c.Key, c.Fence, after)
	if err != nil {
		return nil, err
	}
	if len(r.list()) == 0 {
		l.fenced()
		return nil, nil
	}
	page, err := r.at(2).letters(c.Key, r.at(0).number())
	if err != nil {
		return nil, fmt.Errorf("read mail: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return nil, nil
	}
	l.known.last = max(l.known.last, r.at(1).number())
	l.known.show(page)
	return page, nil
}

// extended is told that the lease goes on, and of the last letter.
func (l *lease) extended(t term, last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over == nil {
		l.term = t
		l.known.last = max(l.known.last, last)
		l.ring()
	}
}

// noted is told of a new letter.
func (l *lease) noted(last int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.last = max(l.known.last, last)
	l.ring()
}

// fenced is told that the server knows nothing of this lease.
func (l *lease) fenced() {
	l.mu.Lock()
	busy := l.known.busy
	l.mu.Unlock()
	if !busy {
		l.bus.leases.lose(l, bus.ErrFenced)
	}
}
