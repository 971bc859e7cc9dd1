package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/interaction"
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
	r.deeds.running.Wait()
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
	deeds     *deeds
	sockets   *sockets
}

func newReceiver(c *Channel, me Account, publish func(context.Context, bus.Inbound) error) *receiver {
	r := &receiver{me: me}
	r.lanes = newLanes(c.room, r.work)
	r.publisher = newPublisher(c, me, r.lanes, publish)
	r.outages = newOutages(c, r.lanes)
	r.catchUp = newCatchUp(r.publisher, r.outages)
	r.deeds = &deeds{channel: c, me: me, publish: publish}
	r.sockets = &sockets{channel: c, outages: r.outages, take: r.take}
	return r
}

// What Slack brings, as Socket Mode names it.
const (
	events        = "events_api"
	interactive   = "interactive"
	slashCommands = "slash_commands"
)

// acknowledge tells Slack that what it brought has arrived, and, where Slack takes that,
// what to show to the person at once; nil shows nothing.
type acknowledge func(show any)

// take takes what Slack brings, whichever way that comes. What cannot be read would be
// unreadable again, so it is acknowledged and left out.
func (r *receiver) take(ctx context.Context, kind string, payload json.RawMessage, ack acknowledge) {
	var (
		d   interaction.Deed
		ok  bool
		err error
	)
	switch kind {
	case events:
		err = r.event(ctx, payload, ack)
	case interactive:
		d, ok, err = interaction.ReadInteractive(payload)
	case slashCommands:
		d, ok, err = interaction.ReadCommand(payload)
	}
	switch {
	case err != nil:
		r.publisher.channel.log.LogAttrs(ctx, slog.LevelError, "what Slack has brought cannot be read and is left out",
			slog.String("kind", kind), slog.Int("bytes", len(payload)))
		ack(nil)
	case ok:
		r.deeds.take(ctx, d, ack)
	case kind != events:
		ack(nil)
	}
}

// event takes one event; it is acknowledged, unless it cannot be read.
func (r *receiver) event(ctx context.Context, payload json.RawMessage, ack acknowledge) error {
	var outer struct {
		Event json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(payload, &outer); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(outer.Event, &kind); err != nil {
		return fmt.Errorf("read an event's kind: %w", err)
	}
	switch kind.Type {
	case "message", "app_mention":
		m := new(message)
		if err := json.Unmarshal(outer.Event, m); err != nil {
			return fmt.Errorf("read a message: %w", err)
		}
		r.heard(ctx, m, func() { ack(nil) })
	default: // not used here, but Slack repeats what is not acknowledged
		ack(nil)
	}
	return nil
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
