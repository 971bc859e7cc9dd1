package drafts

import (
	"time"

	"parley/bus"
)

// Missed implements bus.Listener: after lost events it drops the text of all answers, because the text would be
// shown with pieces missing.
func (d *Drafts) Missed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.turns {
		x.blocks, x.omittedLength, x.openBlock = nil, 0, -1
	}
}

// Heard implements bus.Listener: it updates the draft of the event's turn. It ignores turns that have no chat, and
// those of which it hears first when a block or a call has already begun.
func (d *Drafts) Heard(e bus.Event) {
	if e.Turn == "" || e.Route.Chat == "" {
		return
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.turns[e.Turn]
	if x == nil {
		switch e.Type {
		case bus.TurnStart, bus.BlockStart, bus.ToolStart:
			x = newDraft(e.Turn, e.Route)
			x.session = e.Session
			x.nextCall = now.Add(draftDelay)
			if d.previewer != nil {
				x.previewInterval = d.previewer.Previews(d.conf.CurrentChat(e.Route.Chat))
			}
			d.turns[e.Turn] = x
		default:
			return
		}
	}
	x.lastHeard = now
	switch e.Type {
	case bus.TurnComplete, bus.TurnError, bus.TurnParked:
		d.handleTurnEnd(x, e)
	default:
		x.apply(e)
	}
	d.wakeFor(x)
}

// handleTurnEnd handles the end of a turn: either the turn's message will replace the draft or, if the turn has no
// message, the draft itself says that the turn was stopped.
func (d *Drafts) handleTurnEnd(x *draft, e bus.Event) {
	x.phase = turnEnded
	if e.Type == bus.TurnError && (e.Error == nil || e.Error.Message == "") {
		x.phase, x.nextCall = turnEndedSilently, time.Now()
		if x.previewInterval > 0 && x.shown != "" && len(x.texts()) > 0 { // when the preview fades, the text that people have read would disappear
			x.previewInterval, x.shown, x.mustKeepPreview = 0, "", true
		}
	}
	d.forgetIfDone(x)
}
