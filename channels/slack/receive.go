package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/slack/events"
	"parley/channels/slack/interaction"
)

// socketCount is how many sockets are open at the same time: while one is being replaced, the other delivers
// events.
const socketCount = 2

// Receive passes what people say to publish until ctx is done, then returns nil. It fails only with the fault Stop:
// Slack refuses a token, or one is missing.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	if !c.identity.receivesMessages {
		return c.CheckSocket(ctx) // its error says that the app token is missing
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	me, err := c.identity.await(ctx)
	if err != nil {
		return onlyStopError(err)
	}
	if len(me.MissingScopes) > 0 {
		c.log.LogAttrs(ctx, slog.LevelError, "the app lacks scopes: add them under OAuth & Permissions and install the app again",
			slog.String("scopes", strings.Join(me.MissingScopes, " ")))
	}
	r := newReceiver(c, me, publish)
	if err := r.outages.load(ctx); err != nil {
		return onlyStopError(err)
	}
	var working sync.WaitGroup
	if c.ReceivesHTTP() {
		working.Go(func() { r.handleRequests(ctx, c.requestReceiver.deliveries) })
	} else {
		for range socketCount {
			working.Go(func() {
				if err := r.sockets.keepOpen(ctx); err != nil {
					cancel(err)
				}
			})
		}
	}
	working.Go(func() { r.catchUp.run(ctx) })
	// The goroutines that add to the lanes end first, then the lanes; the cursor is saved last, so that it covers
	// everything that was published.
	working.Wait()
	r.lanes.running.Wait()
	r.actions.running.Wait()
	r.publisher.namingPanes.Wait()
	r.outages.save(context.WithoutCancel(ctx))
	return onlyStopError(context.Cause(ctx))
}

// onlyStopError returns err if its fault is Stop, the only fault with which Receive ends before ctx does; otherwise
// nil.
func onlyStopError(err error) error {
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Stop {
		return refusal
	}
	return nil
}

// A receiver is one run of Receive. Sockets deliver events, lanes keep them in order, the publisher publishes them,
// and catchUp reads from history what no socket delivered.
type receiver struct {
	me        Account
	log       *slog.Logger
	lanes     *lanes
	publisher *publisher
	outages   *outages
	catchUp   *catchUp
	actions   *actions
	sockets   *sockets
}

// newReceiver builds a receiver and connects its parts.
func newReceiver(c *Channel, me Account, publish func(context.Context, bus.Inbound) error) *receiver {
	r := &receiver{me: me, log: c.log}
	r.lanes = newLanes(c.maxQueued, r.handleItem)
	r.publisher = newPublisher(c, me, r.lanes, publish)
	r.outages = newOutages(c, r.lanes)
	r.catchUp = newCatchUp(c, r.publisher, r.outages)
	r.actions = &actions{me: me, translator: c.translator, conversations: c.conversations, sender: c.sender, publish: publish, log: c.log}
	r.sockets = &sockets{
		addresses: c.socketAddresses, reachability: c.identity.reachability, outages: r.outages,
		timing: c.timing, log: c.log, handle: r.handleDelivery,
	}
	return r
}

// An acknowledge tells Slack that a delivery has arrived. show is what Slack immediately shows to the person who
// caused the delivery, if this kind of delivery allows that; nil shows nothing.
type acknowledge func(show any)

// handleDelivery handles what Slack delivers, over a socket or by a request. A delivery that can't be decoded is
// acknowledged and skipped, because it would be no better the next time.
func (r *receiver) handleDelivery(ctx context.Context, kind string, payload json.RawMessage, ack acknowledge) {
	var (
		d   interaction.Action
		ok  bool
		err error
	)
	switch kind {
	case events.Event:
		err = r.handleEvent(ctx, payload, ack)
	case events.Interaction:
		d, ok, err = interaction.ReadInteractive(payload)
	case events.Command:
		d, ok, err = interaction.ReadCommand(payload)
	}
	switch {
	case err != nil:
		r.log.LogAttrs(ctx, slog.LevelError, "what Slack has brought cannot be read and is left out",
			slog.String("kind", kind), slog.Int("bytes", len(payload)))
		ack(nil)
	case ok:
		r.actions.receiveAction(ctx, d, ack)
	case kind != events.Event:
		ack(nil)
	}
}

// handleEvent handles one event. It acknowledges the event, either immediately or once it is published. If the
// event can't be decoded, it returns an error and acknowledges nothing.
func (r *receiver) handleEvent(ctx context.Context, payload json.RawMessage, ack acknowledge) error {
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
		r.receiveMessage(ctx, m, func() { ack(nil) })
	case "reaction_added", "reaction_removed":
		one, ok, err := interaction.ReadReaction(outer.Event)
		if err != nil {
			return err
		}
		if !ok || one.Author != r.me.User || one.User == r.me.User {
			ack(nil)
			return nil
		}
		r.actions.publishReaction(ctx, one, ack)
	default:
		o, ok, err := interaction.ReadSurfaceOpened(outer.Event)
		if err != nil {
			return err
		}
		if ok {
			r.actions.publishOpened(ctx, o)
		}
		ack(nil) // Slack repeats every event that is not acknowledged, even an unused one
	}
	return nil
}

// lastRetry is the number of the last attempt that Slack makes to deliver an event. Once it is reached, Slack may
// already have given up on earlier events.
const lastRetry = 3

// handleRequests handles, until ctx is done, what Slack delivers by requests. All that time, Slack counts as heard:
// if a request can't deliver something, Slack repeats it for minutes.
func (r *receiver) handleRequests(ctx context.Context, requests <-chan events.Delivery) {
	r.outages.noteOpened(ctx)
	defer r.outages.noteClosed()
	tick := time.NewTicker(r.catchUp.timing.saveInterval)
	defer tick.Stop()
	var quiet silence
	for {
		select {
		case d := <-requests:
			r.outages.noteHeard()
			r.detectLosses(ctx, d, &quiet)
			r.handleDelivery(ctx, d.Kind, d.Payload, d.Ack)
		case <-tick.C:
			r.outages.noteHeard()
		case <-ctx.Done():
			return
		}
	}
}

// detectLosses records a gap if a request shows that earlier ones may have been lost: because it is Slack's last
// attempt to deliver an event, or because Slack reports that it has dropped events beyond its rate limit.
func (r *receiver) detectLosses(ctx context.Context, d events.Delivery, quiet *silence) {
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
		since = quiet.missingSince(time.Unix(told.Time, 0))
	case d.Retry == 0:
		quiet.noteDelivery(wallClock())
	}
	if !since.IsZero() {
		r.log.LogAttrs(ctx, slog.LevelWarn, "Slack could not deliver everything; what is missing is read from history",
			slog.Time("since", since))
		r.outages.noteLostSince(since, wallClock())
	}
}

// A silence is the last long period in which Slack delivered nothing, because nobody wrote or the connection was
// interrupted.
type silence struct{ began, ended, lastDelivery time.Time }

const (
	longSilence = time.Minute
	// silenceTTL is how long a silence is remembered. After that, Slack no longer delivers messages from the
	// silence.
	silenceTTL = 10 * time.Minute
)

// noteDelivery records that Slack delivered something at the first attempt, which ends a silence.
func (s *silence) noteDelivery(now time.Time) {
	if !s.lastDelivery.IsZero() && now.Sub(s.lastDelivery) > longSilence {
		if now.Sub(s.ended) > silenceTTL {
			s.began = s.lastDelivery
		}
		s.ended = now
	}
	s.lastDelivery = now
}

// missingSince returns the time since when messages may be missing if a message that was written at the time said
// was delivered late.
func (s *silence) missingSince(said time.Time) time.Time {
	if !s.began.IsZero() && s.began.Before(said) && said.Before(s.ended) {
		return s.began
	}
	if !s.lastDelivery.IsZero() && s.lastDelivery.Before(said) {
		return s.lastDelivery
	}
	return said
}

// receiveMessage puts a message, or a change to one, into its chat's lane (queue). A message that can't be meant
// for the bot is only acknowledged.
func (r *receiver) receiveMessage(ctx context.Context, m *message, ack func()) {
	if what, ok := m.readChange(r.me); ok {
		r.lanes.add(ctx, m.Channel, item{ts: what.eventID, task: func(ctx context.Context) { r.publisher.publishChange(ctx, what, ack) }})
		return
	}
	if !m.mayConcernBot(r.me, r.catchUp.mention) {
		if t := r.publisher.translator; m.isSpeech(r.me) {
			t.unaddressed.Note(t.messageID(m, r.me), t.replyAddress(m))
		}
		ack()
		return
	}
	r.lanes.add(ctx, m.Channel, item{message: m, ack: ack})
}

// handleItem handles one item from a lane.
func (r *receiver) handleItem(ctx context.Context, l *lane, it *item) {
	switch {
	case it.message == nil:
		it.task(ctx)
	case l.isSenderLane:
		r.publisher.publishInSenderLane(ctx, it.message, it.ack)
	default:
		r.catchUp.readBefore(ctx, l.chat, it.message)
		r.publisher.deliver(ctx, it.message, it.ack)
	}
}
