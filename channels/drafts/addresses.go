package drafts

import "time"

// Block stops the drafts at an address whose mail is about to be sent, and waits for the call in progress there, so
// that people see the mail below the draft.
func (d *Drafts) Block(key string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	d.sendingMail[key]++
	under := d.callsInProgress[key]
	d.mu.Unlock()
	if under != nil {
		<-under
	}
}

// Unblock lets drafts continue at an address. If mail is left over there, that is sent first.
func (d *Drafts) Unblock(key string, leftOver bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sendingMail[key]--; d.sendingMail[key] == 0 {
		delete(d.sendingMail, key)
	}
	delete(d.mailLeftOver, key)
	if leftOver {
		d.mailLeftOver[key] = true
	}
	d.releaseHeld(key)
}

// releaseHeld wakes the schedule if a draft at the address was waiting for mail or for a call there. The caller holds
// d.mu.
func (d *Drafts) releaseHeld(key string) {
	if d.draftsWaiting[key] {
		delete(d.draftsWaiting, key)
		d.alarm.Ring()
	}
}

// wakeFor wakes the schedule if a draft is due before the schedule would wake by itself. The caller holds d.mu.
func (d *Drafts) wakeFor(x *draft) {
	at, due := d.dueAt(x)
	if due && (d.wakesAt.IsZero() || at.Before(d.wakesAt)) {
		d.alarm.Ring()
	}
}

// dueAt returns when to call the platform for a draft; false if no call is needed, or if the draft's address is
// busy. The caller holds d.mu.
func (d *Drafts) dueAt(x *draft) (time.Time, bool) {
	if !x.needsCall() {
		return time.Time{}, false
	}
	if d.sendingMail[x.key] > 0 || d.mailLeftOver[x.key] || d.callsInProgress[x.key] != nil {
		d.draftsWaiting[x.key] = true
		return time.Time{}, false
	}
	at := x.nextCall
	if x.previewInterval > 0 && !x.hasNews {
		at = x.repeatPreviewAt
	}
	for _, later := range []time.Time{d.quietUntil[x.to.Chat], d.conf.Pace.PausedUntil(d.conf.CurrentChat(x.to.Chat))} {
		if later.After(at) {
			at = later
		}
	}
	return at, true
}
