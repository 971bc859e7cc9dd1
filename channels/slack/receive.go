package slack

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// Joins tells where the bot takes part.
type Joins interface {
	// Joined tells whether somebody admitted has spoken to the bot in that
	// thread, and since when: from then on it needs no further mention there.
	Joined(ctx context.Context, at bus.Address) (since time.Time, joined bool, err error)
	// Threads lists such threads of a chat, in any order.
	Threads(ctx context.Context, chat bus.Address) ([]bus.Address, error)
}

// Cursors remembers how far something was read.
type Cursors interface {
	// Cursor is what SetCursor was given last for that address; "" if nothing was.
	Cursor(ctx context.Context, at bus.Address) (string, error)
	SetCursor(ctx context.Context, at bus.Address, cursor string) error
}

// forgetful is a Joins and a Cursors that remember nothing.
type forgetful struct{}

func (forgetful) Joined(context.Context, bus.Address) (time.Time, bool, error) {
	return time.Time{}, false, nil
}
func (forgetful) Threads(context.Context, bus.Address) ([]bus.Address, error) { return nil, nil }
func (forgetful) Cursor(context.Context, bus.Address) (string, error)         { return "", nil }
func (forgetful) SetCursor(context.Context, bus.Address, string) error        { return nil }

const (
	// sockets is how many are open at a time: while one is replaced, the other
	// brings what is said.
	sockets = 2
	// maxWaiting bounds what waits to be published. What comes beyond it is not
	// acknowledged; Slack brings it again, or it is read from history.
	maxWaiting = 20000
	// settle is how long a message waits for an earlier one of its chat, which
	// the other socket may bring a moment later.
	settle = 25 * time.Millisecond
)

// Receive hands what people say to publish until ctx is done, and then returns
// nil.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	if !c.app {
		return c.CheckSocket(ctx) // which says so
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
	r := &receiver{
		channel: c, me: me, publish: publish, lanes: map[string]*lane{},
		handed: newCache[struct{}](time.Hour), lately: newCache[struct{}](24 * time.Hour),
	}
	r.gaps = newGaps(r)
	if err := r.gaps.begin(ctx); err != nil {
		return stopOnly(err)
	}
	var working sync.WaitGroup
	for range sockets {
		working.Go(func() {
			if err := r.socket(ctx); err != nil {
				cancel(err)
			}
		})
	}
	working.Go(func() { r.gaps.run(ctx) })
	working.Wait()
	r.working.Wait()
	r.gaps.save(context.WithoutCancel(ctx))
	return stopOnly(context.Cause(ctx))
}

// stopOnly passes the one error by which Receive may end of itself.
func stopOnly(err error) error {
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Stop {
		return refusal
	}
	return nil
}

// introduce finds out who the bot is, however long that takes. Its error is
// ctx's, or says that the token is refused.
func (c *Channel) introduce(ctx context.Context) (Account, error) {
	wait := new(backoff)
	for {
		me, err := c.Check(ctx)
		if err == nil {
			return me, nil
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if ok && refusal.Fault == channels.Stop {
			return me, err
		}
		if wait.last == 0 {
			c.log.LogAttrs(ctx, slog.LevelWarn, "Slack cannot be reached; trying on", slog.Any("error", err))
		}
		if !wait.pause(ctx, err) {
			return me, ctx.Err()
		}
	}
}

// A receiver is one run of Receive.
type receiver struct {
	channel *Channel
	me      Account
	publish func(context.Context, bus.Inbound) error
	handed  *cache[struct{}] // ids of what was published lately
	lately  *cache[struct{}] // chats in which the bot was spoken to
	gaps    *gaps

	mu      sync.Mutex
	lanes   map[string]*lane // of chats in which something waits
	waiting int
	dropped time.Time      // when the oldest was said for which there was no room
	working sync.WaitGroup // lanes
}

// An item is one thing for a lane to do.
type item struct {
	m    *message
	ack  func()
	gap  *gap          // fill this one, instead of m
	done chan struct{} // closed when the gap is filled
	at   time.Time     // of its arrival
}

// A lane is what waits in one chat, or of one person there who cannot be judged
// now. It has a goroutine as long as that is something.
type lane struct {
	key   string // the chat, or that and the person
	chat  string
	aside bool // of a person
	items []item
	now   *item // what is worked on
}

// heard takes an event. What it does not take is not acknowledged.
func (r *receiver) heard(ctx context.Context, m *message, ack func()) {
	if !m.mayConcern(r.me) {
		ack()
		return
	}
	r.enqueue(ctx, m.Channel, item{m: m, ack: ack})
}

// enqueue puts an item into its chat's lane. Two sockets may bring two messages
// in the wrong order; those that still wait are put right.
func (r *receiver) enqueue(ctx context.Context, chat string, it item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if it.m != nil && r.waiting >= r.channel.room {
		if at := moment(it.m.TS); r.dropped.IsZero() || at.Before(r.dropped) {
			r.dropped = at
		}
		return
	}
	r.waiting++
	it.at = time.Now()
	l := r.lane(ctx, chat, "")
	i := len(l.items)
	for it.m != nil && i > 0 && l.items[i-1].m != nil && l.items[i-1].m.TS > it.m.TS {
		i--
	}
	l.items = slices.Insert(l.items, i, it)
}

// lane is a chat's, or a person's in it. r.mu is held.
func (r *receiver) lane(ctx context.Context, chat, user string) *lane {
	key := chat
	if user != "" {
		key = asideKey(chat, user)
	}
	l := r.lanes[key]
	if l == nil {
		l = &lane{key: key, chat: chat, aside: user != ""}
		r.lanes[key] = l
		r.working.Go(func() { r.run(ctx, l) })
	}
	return l
}

func asideKey(chat, user string) string { return chat + " " + user }

// setAside lets what somebody says wait apart from their chat, in its order, as
// long as nobody can tell whether they may talk.
func (r *receiver) setAside(ctx context.Context, m *message, ack func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting++
	l := r.lane(ctx, m.Channel, m.User)
	l.items = append(l.items, item{m: m, ack: ack})
}

// isAside tells whether something of a person's waits apart.
func (r *receiver) isAside(m *message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lanes[asideKey(m.Channel, m.User)] != nil
}

// run works on a lane until nothing waits in it or ctx is done.
func (r *receiver) run(ctx context.Context, l *lane) {
	for {
		it, wait := r.next(ctx, l)
		switch {
		case it == nil && wait == 0:
			return
		case it == nil:
			sleep(ctx, wait)
		case it.gap != nil:
			r.gaps.fill(ctx, l.chat, it.gap)
			close(it.done)
		case l.aside:
			r.insist(ctx, it.m, it.ack)
		default:
			r.catchUp(ctx, l.chat, it.m)
			r.hand(ctx, it.m, it.ack)
		}
	}
}

// catchUp hands on what was said before a message and has not come yet.
func (r *receiver) catchUp(ctx context.Context, chat string, m *message) {
	if g := r.gaps.before(chat); g != nil {
		r.gaps.fill(ctx, chat, g)
		return
	}
	for _, earlier := range r.earlier(ctx, m) {
		if !r.hand(ctx, earlier, nothing) {
			return
		}
	}
}

// nothing is the ack of what no socket has brought.
func nothing() {}

// next takes what is to be done next in a lane: nothing yet, if it says how long
// to wait, and nothing any more, if it does not.
func (r *receiver) next(ctx context.Context, l *lane) (*item, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil {
		return nil, 0 // what is left keeps the cursor back
	}
	if l.now != nil {
		l.now = nil
		r.waiting--
	}
	if len(l.items) == 0 {
		delete(r.lanes, l.key)
		return nil, 0
	}
	it := l.items[0]
	if wait := settle - time.Since(it.at); it.m != nil && wait > 0 {
		return nil, wait
	}
	l.items = l.items[1:]
	l.now = &it
	return &it, 0
}

// hand publishes one message, however often that takes, or sets it aside where it
// is its sender who cannot be judged now. It is false if ctx ended first.
func (r *receiver) hand(ctx context.Context, m *message, ack func()) bool {
	if r.isAside(m) {
		r.setAside(ctx, m, ack)
		return true
	}
	wait := &backoff{most: ownWait}
	for ctx.Err() == nil { // what waits behind a gap that is not read is not next
		err := r.once(ctx, m)
		switch {
		case err == nil:
			ack()
			return true
		case errors.Is(err, channels.ErrUnjudged) && ctx.Err() == nil:
			r.setAside(ctx, m, ack)
			return true
		}
		if !r.pause(ctx, wait, m, err) {
			return false
		}
	}
	return false
}

// insist publishes one message, however often that takes.
func (r *receiver) insist(ctx context.Context, m *message, ack func()) {
	wait := &backoff{most: asideWait, firm: true}
	for ctx.Err() == nil {
		err := r.once(ctx, m)
		if err == nil {
			ack()
			return
		}
		r.pause(ctx, wait, m, err)
	}
}

// once publishes a message, unless that is done.
func (r *receiver) once(ctx context.Context, m *message) error {
	id := r.channel.id(m, r.me)
	if _, ok := r.handed.get(id); ok {
		return nil
	}
	in, concerns, err := r.channel.inbound(ctx, m, r.me)
	if err != nil || !concerns {
		// What was not for the bot may come again as what is: of the two events
		// of a mention either is enough, but it must not be lost between them.
		return err
	}
	if err := r.publish(ctx, in); err != nil {
		return err
	}
	r.handed.put(id, struct{}{})
	r.lately.put(m.Channel, struct{}{})
	return nil
}

// pause waits before a message is tried again, and says so the first time.
func (r *receiver) pause(ctx context.Context, wait *backoff, m *message, err error) bool {
	if wait.last == 0 && ctx.Err() == nil {
		r.channel.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
			slog.String("message", r.channel.id(m, r.me)), slog.Any("error", err))
	}
	return wait.pause(ctx, err)
}

// oldest is when the oldest message was said that is not handed on; zero if none
// waits.
func (r *receiver) oldest() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.dropped
	note := func(it item) {
		if it.m == nil {
			return
		}
		if at := moment(it.m.TS); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	for _, l := range r.lanes {
		for _, it := range l.items {
			note(it)
		}
		if l.now != nil {
			note(*l.now)
		}
	}
	return first
}

// missed is since when something is missing for which there was no room, once
// there is room again; else zero.
func (r *receiver) missed() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting > r.channel.room/2 {
		return time.Time{}
	}
	since := r.dropped
	r.dropped = time.Time{}
	return since
}
