package server

import (
	"context"

	"parley/bus"
	"parley/channels"
	"parley/channels/dispatch"
	"parley/channels/files"
)

// dispatchers runs the dispatchers of all channels.
type dispatchers struct {
	foundation
	liveChannels  liveChannels
	conversations *conversations
	files         files.Store
}

// newDispatchers returns the dispatchers, which plan the parts of answers from now on.
func newDispatchers(on foundation, chats *chatSide) *dispatchers {
	d := &dispatchers{foundation: on, liveChannels: chats.liveChannels, conversations: chats.conversations, files: chats.copies}
	on.home.PlanReplies(d.planReply)
	return d
}

// Run runs the dispatchers of all channels.
func (d *dispatchers) Run(ctx context.Context) error {
	return d.liveChannels.each(ctx, func(ctx context.Context, l *liveChannel) error {
		one := &dispatch.Dispatcher{
			Name: l.name, Channel: l.channel, Bus: d.home.Bus, Book: d.home.Book, Subjects: d.home.Book, Drafts: d.home.Book,
			Files: d.files, MayShorten: d.mayShorten, MayGrow: d.mayGrow,
			Policy: dispatch.Policy{OnUnknown: l.config.OnUnknown, Stream: l.config.Stream, Drain: d.settings.Load().Serve.Drain},
			Notify: dispatch.TellSession(d.home.Bus), SessionAt: d.conversations.replySession, Log: d.log, Observe: l.traffic.Observe(d.metrics.Send(l.name)), Trace: d.traces, Point: d.point,
		}
		l.dispatcher.Store(one)
		return l.rerunAfterRefusal(ctx, d.foundation, one.Run)
	})
}

// planReply plans the sending of an answer that is being published; see dispatch.Dispatcher.PlanReply.
func (d *dispatchers) planReply(topic, id string, body []byte) (channels.Send, bool) {
	for _, l := range d.liveChannels {
		if one := l.dispatcher.Load(); one != nil && topic == string(bus.OutboundTopic(l.name)) {
			return one.PlanReply(id, body)
		}
	}
	return channels.Send{}, false
}

// mayShorten reports whether a long text may be sent as its beginning and a file. It may if every serving process
// is from a release that can send such messages.
func (d *dispatchers) mayShorten(ctx context.Context) bool {
	why, err := d.home.MaySendFiles(ctx)
	return err == nil && why == ""
}

// mayGrow reports whether an answer may be shown in a message that grows while the answer is being made. It may if
// every serving process is from a release that can take over such a message.
func (d *dispatchers) mayGrow(ctx context.Context) bool {
	may, err := d.home.MayGrow(ctx)
	return err == nil && may
}
