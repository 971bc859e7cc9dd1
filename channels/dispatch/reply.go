package dispatch

import (
	"parley/bus"
	"parley/channels"
	"parley/channels/files"
)

// PlanReply returns what Book.Begin is to record of a turn's answer that is being published and that
// can be sent at once. Whoever publishes it may record that in the same write: this saves the person
// who asked the wait for a write of its own (see sqlbook.Book.BeginShare). It returns false if the
// answer may have to wait, if more must be looked up to plan it, or if an answer that was cut off
// would not be sent again. PlanReply may be called while Run runs.
func (d *Dispatcher) PlanReply(id string, body []byte) (send channels.Send, ok bool) {
	// Who publishes the answer is not to fail because of a text that cannot be rendered; deliver
	// gives the message up in its own time.
	defer func() {
		if p := recover(); p != nil {
			channels.LogPanic(d.Log, "plan", d.Name, id, p)
			send, ok = channels.Send{}, false
		}
	}()
	r := d.running.Load()
	if r == nil || r.policy.OnUnknown == drop || !channels.Connected(r.Channel) {
		return channels.Send{}, false
	}
	out, err := bus.DecodeOutbound(body)
	if err != nil || !out.IsReply() || !bus.IsClean(out.To.String()) || len(out.Needs) > 0 || !out.Expires.IsZero() ||
		out.Subject != "" || len(files.Of(out)) > 0 || r.retries.waits(out.To.String()) {
		return channels.Send{}, false
	}
	record := recordOf(id, &out)
	record.Parts = r.rendering.render(out.Text)
	if len(record.Parts) == 0 || len(record.Parts) > mostMessages || !r.drafts.CloseUnposted(out) {
		return channels.Send{}, false
	}
	return record, true
}
