package drafts

import (
	"context"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/backoff"
)

// resolveUnknown finds out whether a draft has arrived whose posting was cut off. If it has, it goes on growing, and
// the answer replaces it. If it has not, or if nobody can tell, the draft is closed: it isn't posted again, and the
// answer becomes a message of its own.
func (d *Drafts) resolveUnknown(work context.Context, x *draft) {
	part := channels.SentPart{State: channels.OutcomeUnknown, Interrupted: 1}
	if r, can := channels.AsReconciler(d.conf.Channel); can {
		to := x.to
		to.Chat = d.conf.CurrentChat(to.Chat)
		// The context of the call that was cut off may have timed out.
		asking, cancel := context.WithTimeout(context.WithoutCancel(work), draftTimeout)
		wanted := channels.Part{Key: channels.PartKey(ID(x.turn), 0)}
		if d.limits.Streams { // even if the setting has changed since
			wanted.Growing = new(channels.Growth)
		}
		id, sent, err := findSent(asking, r, to, wanted)
		cancel()
		switch {
		case err == nil && sent && !d.belongsToOtherTurn(x, id):
			part = channels.SentPart{State: channels.Drafted, PlatformID: id}
		case err == nil:
			part = channels.SentPart{State: channels.Failed, Code: "not_sent"}
		}
	}
	if part.State == channels.OutcomeUnknown {
		d.log.Warn("nobody can tell whether a draft was posted", slog.String("turn", x.turn))
	}
	d.mark(work, x, part)
	d.update(x, func(x *draft) {
		x.platformID, x.state = part.PlatformID, draftShown
		if x.platformID == "" {
			x.state = draftClosed
		}
	})
}

// belongsToOtherTurn reports whether a message is the draft of another turn: messages that grow have no key by
// which FindSent could distinguish them.
func (d *Drafts) belongsToOtherTurn(x *draft, id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.turns {
		if other != x && other.platformID == id {
			return true
		}
	}
	return false
}

// findSent asks the platform whether a part was sent. It asks again if it is told to wait, or if the platform can't
// be reached.
func findSent(ctx context.Context, r channels.Reconciler, to bus.Address, part channels.Part) (id string, sent bool, err error) {
	for waits := (backoff.Series{}); ; {
		id, sent, err = r.FindSent(ctx, to, part)
		fault := channels.FaultOf(err)
		if err == nil || fault.Fault != channels.Retry {
			return id, sent, err
		}
		select {
		case <-time.After(max(fault.RetryAfter, waits.Next(draftTimeout))):
		case <-ctx.Done():
			return "", false, err
		}
	}
}
