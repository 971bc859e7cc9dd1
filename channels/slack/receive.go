package slack

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"parley/bus"
	"parley/channels"
)

// openSockets is how many sockets are open at a time: while one is replaced, the
// other brings what is said.
const openSockets = 2

// Receive hands what people say to publish until ctx is done, and then returns
// nil.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	if !c.app {
		return c.CheckSocket(ctx) // its error says that the app token is missing
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	me, err := c.introduce(ctx)
	if err != nil {
		return stopOnly(err)
	}
	if len(me.Lacks) > 0 {
		c.log.LogAttrs(ctx, slog.LevelError, "the app lacks scopes: add them under OAuth & Permissions and install the app again",
			slog.String("scopes", strings.Join(me.Lacks, " ")))
	}
	r := newReceiver(c, me, publish)
	if err := r.outages.begin(ctx); err != nil {
		return stopOnly(err)
	}
	var working sync.WaitGroup
	for range openSockets {
		working.Go(func() {
			if err := r.sockets.keepOpen(ctx); err != nil {
				cancel(err)
			}
		})
	}
	working.Go(func() { r.catchUp.run(ctx) })
	// The lanes end after those that add to them, and the cursor is saved after
	// both, so that it names everything that was published.
	working.Wait()
	r.lanes.running.Wait()
	r.presses.running.Wait()
	r.outages.save(context.WithoutCancel(ctx))
	return stopOnly(context.Cause(ctx))
}

// stopOnly passes on an error of kind Stop, the only one by which Receive ends
// before ctx does.
func stopOnly(err error) error {
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Stop {
		return refusal
	}
	return nil
}

// introduce asks Slack who the bot is, until Slack answers. Its error is ctx's,
// or says that the token is refused.
func (c *Channel) introduce(ctx context.Context) (Account, error) {
	wait := new(retryWait)
	for {
		me, err := c.Check(ctx)
		if err == nil {
			return me, nil
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if ok && refusal.Fault == channels.Stop {
			return me, err
		}
		if !wait.series.Began() {
			c.log.LogAttrs(ctx, slog.LevelWarn, "Slack cannot be reached; trying on", slog.Any("error", err))
		}
		if !wait.pause(ctx, err) {
			return me, ctx.Err()
		}
	}
}

// A receiver is one run of Receive: sockets bring events, lanes keep their order,
// the publisher publishes them, and catchUp reads from history what no socket
// brought.
type receiver struct {
	me        Account
	lanes     *lanes
	publisher *publisher
	outages   *outages
	catchUp   *catchUp
	presses   *presses
	sockets   *sockets
}

func newReceiver(c *Channel, me Account, publish func(context.Context, bus.Inbound) error) *receiver {
	r := &receiver{me: me}
	r.lanes = newLanes(c.room, r.work)
	r.publisher = newPublisher(c, me, r.lanes, publish)
	r.outages = newOutages(c, r.lanes)
	r.catchUp = newCatchUp(r.publisher, r.outages)
	r.presses = &presses{channel: c, me: me, publish: publish}
	r.sockets = &sockets{channel: c, outages: r.outages, heard: r.heard, pressed: r.presses.take}
	return r
}

// heard puts a message that a socket brought into its chat's lane. One that
// cannot be meant for the bot is only acknowledged.
func (r *receiver) heard(ctx context.Context, m *message, ack func()) {
	if !m.mayConcern(r.me, r.publisher.channel.mention) {
		ack()
		return
	}
	r.lanes.add(ctx, m.Channel, item{m: m, ack: ack})
}

// work does what one item of a lane asks for.
func (r *receiver) work(ctx context.Context, l *lane, it *item) {
	switch {
	case it.m == nil:
		it.task(ctx)
	case l.aside:
		r.publisher.retryAside(ctx, it.m, it.ack)
	default:
		r.catchUp.readBefore(ctx, l.chat, it.m)
		r.publisher.deliver(ctx, it.m, it.ack)
	}
}
