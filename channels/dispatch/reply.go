package dispatch

import (
	"parley/bus"
	"parley/channels"
	"parley/channels/files"
)

// PlanReply returns the record that Book.Begin would make of a turn's answer that is about to be published, if the
// answer can be sent at once. Whoever publishes the answer may write that record in the same write, so that the
// person who asked needn't wait for a second one (see sqlbook.Book.BeginShare). PlanReply returns false if the
// answer may have to wait, if planning it takes more lookups, or if an answer whose sending is cut off would not be
// sent again. It may be called while Run runs.
func (d *Dispatcher) PlanReply(id string, body []byte) (send channels.Send, ok bool) {
	// A text that can't be rendered must not fail whoever publishes the answer; deliver gives the message up later.
	defer func() {
		if p := recover(); p != nil {
			channels.LogPanic(d.Log, "plan", d.Name, id, p)
			send, ok = channels.Send{}, false
		}
	}()
	r := d.running.Load()
	if r == nil || r.policy.OnUnknown == onUnknownDrop || !channels.Connected(r.Channel) {
		return channels.Send{}, false
	}
	out, err := bus.DecodeOutbound(body)
	if err != nil || !out.IsReply() || !bus.IsClean(out.To.String()) || len(out.Needs) > 0 || !out.Expires.IsZero() ||
		out.Subject != "" || len(files.Of(out)) > 0 || r.retries.waits(out.To.String()) {
		return channels.Send{}, false
	}
	record := recordOf(id, &out)
	record.Parts = r.rendering.render(out.Text)
	if len(record.Parts) == 0 || len(record.Parts) > maxMessages || !r.drafts.CloseUnposted(out) {
		return channels.Send{}, false
	}
	return record, true
}
