package sessioncache

import (
	"context"
	"sync"
	"time"

	"parley/agent/journal"
)

const (
	writeAfter        = 2 * time.Second // entries that the session's next run has not written by then are written by writeDue
	writeTimeout      = 5 * time.Second // limits one attempt
	maxParallelWrites = 64              // how many journals write at the same time, sharing a round trip to a server
)

// unwrittenJournals are journals with entries that the next append has to write (see journal.Owe). The next run of
// their sessions writes these, or otherwise writeDue does.
type unwrittenJournals struct {
	writeMu sync.Mutex // locked while entries are being written

	mu    sync.Mutex
	owing []unwrittenJournal // oldest first
	timer *time.Timer        // calls writeDue; nil while there are no entries to write
}

// An unwrittenJournal is a journal with entries to write, and since when.
type unwrittenJournal struct {
	journal *journal.Journal
	since   time.Time
}

// add adds a journal if it has entries to write.
func (d *unwrittenJournals) add(j *journal.Journal) {
	if j == nil || !j.Owes() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.owing = append(d.owing, unwrittenJournal{j, time.Now()})
	d.schedule()
}

// schedule sets the timer for when the first journal is due. The caller holds d.mu.
func (d *unwrittenJournals) schedule() {
	if d.timer == nil && len(d.owing) > 0 {
		d.timer = time.AfterFunc(time.Until(d.owing[0].since.Add(writeAfter)), d.writeDue)
	}
}

// writeDue writes the entries of journals that are due, and schedules its next call for when the next ones will be.
func (d *unwrittenJournals) writeDue() {
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	d.mu.Lock()
	d.timer = nil
	n := 0
	for n < len(d.owing) && time.Since(d.owing[n].since) >= writeAfter {
		n++
	}
	due := d.owing[:n:n]
	d.owing = d.owing[n:]
	d.schedule()
	d.mu.Unlock()
	d.writeEntries(context.Background(), due)
}

// writeAll writes all entries. Entries that the store doesn't confirm are left to the next holders of their sessions.
func (d *unwrittenJournals) writeAll(ctx context.Context) {
	d.writeMu.Lock()
	defer d.writeMu.Unlock()
	d.writeEntries(ctx, d.takeAll())
	d.takeAll()
}

// takeAll removes and returns all journals.
func (d *unwrittenJournals) takeAll() []unwrittenJournal {
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

// writeEntries writes the entries of journals, many at the same time. Entries that the store doesn't confirm are
// written later.
func (d *unwrittenJournals) writeEntries(ctx context.Context, due []unwrittenJournal) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var all sync.WaitGroup
	room := make(chan struct{}, maxParallelWrites)
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
