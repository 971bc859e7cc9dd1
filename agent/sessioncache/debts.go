package sessioncache

import (
	"context"
	"sync"
	"time"

	"parley/agent/journal"
)

const (
	payAfter  = 2 * time.Second // what the session's next run has not written by then, payDue writes
	payTime   = 5 * time.Second // limits one try
	maxPaying = 64              // how many journals write at the same time, sharing a round trip to a server
)

// debts are journals that owe their logs entries (see journal.Owe). The next run of their sessions writes
// these, or otherwise payDue does.
type debts struct {
	paying sync.Mutex // locked while debts are being paid

	mu    sync.Mutex
	owing []debt      // oldest first
	timer *time.Timer // calls payDue; nil while nothing is owed
}

// A debt is a journal that owes something, and since when.
type debt struct {
	journal *journal.Journal
	since   time.Time
}

// add adds a journal if it owes something.
func (d *debts) add(j *journal.Journal) {
	if j == nil || !j.Owes() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owing = append(d.owing, debt{j, time.Now()})
	d.schedule()
}

// schedule sets the timer for when the first debt is due. The caller holds d.mu.
func (d *debts) schedule() {
	if d.timer == nil && len(d.owing) > 0 {
		d.timer = time.AfterFunc(time.Until(d.owing[0].since.Add(payAfter)), d.payDue)
	}
}

// payDue pays the debts that are due, and schedules its next call for when the next ones will be.
func (d *debts) payDue() {
	d.paying.Lock()
	defer d.paying.Unlock()
	d.mu.Lock()
	d.timer = nil
	n := 0
	for n < len(d.owing) && time.Since(d.owing[n].since) >= payAfter {
		n++
	}
	due := d.owing[:n:n]
	d.owing = d.owing[n:]
	d.schedule()
	d.mu.Unlock()
	d.pay(context.Background(), due)
}

// payAll pays all debts. If the store doesn't confirm some, these are left to the next holders of their
// sessions.
func (d *debts) payAll(ctx context.Context) {
	d.paying.Lock()
	defer d.paying.Unlock()
	d.pay(ctx, d.takeAll())
	d.takeAll()
}

// takeAll removes and returns all debts.
func (d *debts) takeAll() []debt {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	all := d.owing
	d.owing = nil
	return all
}

// pay pays debts, many at the same time. If the store doesn't confirm some, these are paid later.
func (d *debts) pay(ctx context.Context, due []debt) {
	ctx, cancel := context.WithTimeout(ctx, payTime)
	defer cancel()
	var all sync.WaitGroup
	room := make(chan struct{}, maxPaying)
	for _, one := range due {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			if one.journal.Pay(ctx) != nil {
				d.add(one.journal)
			}
		})
	}
	all.Wait()
}
