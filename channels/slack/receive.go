package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/events"
	"parley/channels/slack/interaction"
)

// openSockets is how many sockets are open at a time: while one is replaced, the
// other brings what is said.
const openSockets = 2

// Receive hands what people say to publish until ctx is done, and then returns
// nil.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	if !c.receives() {
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
	if c.ReceivesHTTP() {
		working.Go(func() { r.takeRequests(ctx, c.requests) })
	} else {
		for range openSockets {
			working.Go(func() {
				if err := r.sockets.keepOpen(ctx); err != nil {
					cancel(err)
				}
			})
		}
	}
	working.Go(func() { r.catchUp.run(ctx) })
	// The lanes end after those that add to them, and the cursor is saved after
	// both, so that it names everything that was published.
	working.Wait()
	r.lanes.running.Wait()
	r.actions.running.Wait()
	r.publisher.naming.Wait()
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
	actions   *actions
	sockets   *sockets
}

func newReceiver(c *Channel, me Account, publish func(context.Context, bus.Inbound) error) *receiver {
	r := &receiver{me: me}
	r.lanes = newLanes(c.room, r.work)
	r.publisher = newPublisher(c, me, r.lanes, publish)
	r.outages = newOutages(c, r.lanes)
	r.catchUp = newCatchUp(r.publisher, r.outages)
	r.actions = &actions{channel: c, me: me, publish: publish}
	r.sockets = &sockets{channel: c, outages: r.outages, take: r.take}
	return r
}

// acknowledge tells Slack that what it brought has arrived, and, where Slack takes that,
// what to show to the person at once; nil shows nothing.
type acknowledge func(show any)

// take takes what Slack brings, whichever way that comes. What cannot be read would be
// unreadable again, so it is acknowledged and left out.
func (r *receiver) take(ctx context.Context, kind string, payload json.RawMessage, ack acknowledge) {
	var (
		d   interaction.Action
		ok  bool
		err error
	)
	switch kind {
	case events.Event:
		err = r.event(ctx, payload, ack)
	case events.Interaction:
		d, ok, err = interaction.ReadInteractive(payload)
	case events.Command:
		d, ok, err = interaction.ReadCommand(payload)
	}
	switch {
	case err != nil:
		r.publisher.channel.log.LogAttrs(ctx, slog.LevelError, "what Slack has brought cannot be read and is left out",
			slog.String("kind", kind), slog.Int("bytes", len(payload)))
		ack(nil)
	case ok:
		r.actions.take(ctx, d, ack)
	case kind != events.Event:
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
	case "reaction_added", "reaction_removed":
		one, ok, err := interaction.ReadReaction(outer.Event)
		if err != nil {
			return err
		}
		if !ok || one.Author != r.me.User || one.User == r.me.User {
			ack(nil)
			return nil
		}
		r.actions.reacted(ctx, one, ack)
	default:
		o, ok, err := interaction.ReadOpened(outer.Event)
		if err != nil {
			return err
		}
		if ok {
			r.actions.opened(ctx, o)
		}
		ack(nil) // Slack repeats what is not acknowledged, whatever it is
	}
	return nil
}

// lastRetry is the number of the last attempt that Slack makes to deliver an event. What
// was said before that one may have come to its last attempt in vain.
const lastRetry = 3

// takeRequests takes what Slack's requests bring until ctx is done. As long as it does,
// Slack is heard: what a request could not deliver Slack delivers again for minutes.
func (r *receiver) takeRequests(ctx context.Context, requests <-chan events.Delivery) {
	r.outages.opened(ctx)
	defer r.outages.closed()
	tick := time.NewTicker(r.publisher.channel.pulse.save)
	defer tick.Stop()
	var quiet silence
	for {
		select {
		case d := <-requests:
			r.outages.heard()
			r.noteLosses(ctx, d, &quiet)
			r.take(ctx, d.Kind, d.Payload, d.Ack)
		case <-tick.C:
			r.outages.heard()
		case <-ctx.Done():
			return
		}
	}
}

// noteLosses notes a gap where a request shows that others before it may have been lost:
// at its last attempt, or because Slack held back what was too much.
func (r *receiver) noteLosses(ctx context.Context, d events.Delivery, quiet *silence) {
	var told struct {
		Type   string `json:"type"`
		Time   int64  `json:"event_time"`
		Minute int64  `json:"minute_rate_limited"`
	}
	if d.Kind != events.Event || json.Unmarshal(d.Payload, &told) != nil {
		return
	}
	var since time.Time
	switch {
	case told.Type == "app_rate_limited":
		since = time.Unix(told.Minute, 0)
	case d.Retry >= lastRetry:
		since = quiet.before(time.Unix(told.Time, 0))
	case d.Retry == 0:
		quiet.end(wallClock())
	}
	if !since.IsZero() {
		r.publisher.channel.log.LogAttrs(ctx, slog.LevelWarn, "Slack could not deliver everything; what is missing is read from history",
			slog.Time("since", since))
		r.outages.deaf(since, wallClock())
	}
}

// A silence is the last longer time in which Slack delivered nothing: people were quiet,
// or the way was cut off.
type silence struct{ began, ended, last time.Time }

const (
	longSilence = time.Minute
	// keptFor is how long a silence is remembered: after that Slack delivers nothing any
	// more that was said in it.
	keptFor = 10 * time.Minute
)

// end notes that something was delivered at its first attempt.
func (s *silence) end(now time.Time) {
	if !s.last.IsZero() && now.Sub(s.last) > longSilence {
		if now.Sub(s.ended) > keptFor {
			s.began = s.last
		}
		s.ended = now
	}
	s.last = now
}

// before is since when something may be missing, if what was said then was delivered
// late.
func (s *silence) before(said time.Time) time.Time {
	if !s.began.IsZero() && s.began.Before(said) && said.Before(s.ended) {
		return s.began
	}
	if !s.last.IsZero() && s.last.Before(said) {
		return s.last
	}
	return said
}

// ReceivesHTTP implements channels.HTTPReceiver.
func (c *Channel) ReceivesHTTP() bool { return c.signing != "" }

// ServeHTTP implements channels.HTTPReceiver.
func (c *Channel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := events.Handler{Secret: c.signing, Deliveries: c.requests}
	h.ServeHTTP(w, r)
}

// heard puts a message that Slack brought into its chat's lane. One that
// cannot be meant for the bot is only acknowledged.
func (r *receiver) heard(ctx context.Context, m *message, ack func()) {
	if what, ok := m.change(r.me); ok {
		r.lanes.add(ctx, m.Channel, item{ts: what.id, task: func(ctx context.Context) { r.publisher.tell(ctx, what, ack) }})
		return
	}
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
