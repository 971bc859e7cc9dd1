package dispatch

import (
	"context"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/pacing"
)

const (
	// typingDelay is the age of a turn at which the "is typing" sign appears; turns that are faster don't need it.
	typingDelay        = 300 * time.Millisecond
	maxTypingTime      = 30 * time.Minute
	typingTimeout      = 5 * time.Second
	defaultTypingFades = 5 * time.Second // when the sign is assumed to fade if the channel does not say
)

// typing shows people where the bot is at work, with the platform's "is typing" sign. It uses one goroutine for all
// chats, which sleeps while no turn is running.
type typing struct {
	typer channels.Typer
	pace  *pacing.Pacer // knows the pauses that platforms ask for
	alarm pacing.Alarm  // rings when the sign may have to be shown earlier than expected

	mu      sync.Mutex
	turns   map[bus.Address]*typingTurn
	wakesAt time.Time // when the goroutine wakes by itself; zero means never
	// showing is the address of the call in progress, and cancelCall cancels it.
	showing    bus.Address
	cancelCall context.CancelFunc
}

// A typingTurn controls the sign for one turn at an address.
type typingTurn struct {
	turn        string
	nextShowing time.Time // when the sign is to be shown again
	endsAt      time.Time
	suppressed  bool // whether something has been sent, so that the sign is not shown
}

func newTyping(t channels.Typer, pace *pacing.Pacer) *typing {
	return &typing{typer: t, pace: pace, alarm: pacing.NewAlarm(), turns: map[bus.Address]*typingTurn{}}
}

// Missed implements bus.Listener: after lost events it forgets all turns, because no sign
// is better than one that never ends.
func (t *typing) Missed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.turns)
}

// Heard implements bus.Listener: it starts, continues or ends the sign for the event's turn.
func (t *typing) Heard(e bus.Event) {
	if e.Route.Chat == "" {
		return
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.turns[e.Route]
	switch e.Type {
	case bus.TurnStart:
		at = &typingTurn{turn: e.Turn, nextShowing: now.Add(typingDelay), endsAt: now.Add(maxTypingTime)}
		t.turns[e.Route] = at
	case bus.TurnComplete, bus.TurnError, bus.TurnParked:
		if at == nil || at.turn != e.Turn {
			return
		}
		delete(t.turns, e.Route)
		return
	case bus.BlockStart, bus.ToolStart:
		// The turn goes on after something was sent, so the sign may appear again, but only after a while, because
		// this event could be older than the send.
		if at == nil || at.turn != e.Turn || !at.suppressed {
			return
		}
		at.suppressed, at.nextShowing = false, now.Add(defaultTypingFades)
	default:
		return
	}
	if t.wakesAt.IsZero() || at.nextShowing.Before(t.wakesAt) {
		t.alarm.Ring()
	}
}

// suppress ends the sign for a turn at an address after something was sent there. On a nil typing it does nothing.
func (t *typing) suppress(to bus.Address, turn string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.turns[to]
	if at == nil || at.turn != turn {
		return
	}
	at.suppressed = true
	if t.cancelCall != nil && t.showing == to {
		t.cancelCall()
	}
}

// show shows the sign wherever it has to be shown, until ctx is done.
func (t *typing) show(ctx context.Context) {
	t.alarm.Run(ctx, func() (sleep time.Duration) {
		for {
			to, call, wait := t.nextDue(ctx)
			if call == nil {
				return wait
			}
			fades, err := t.typer.Typing(call, to)
			t.pace.NoteLimit(to.Chat, err)
			t.planNext(to, fades, err)
		}
	})
}

// nextDue returns the address at which to show the sign now, and the context for that call. If there is none, it
// returns a nil context and how long to wait; 0 means until the alarm rings.
func (t *typing) nextDue(ctx context.Context) (to bus.Address, call context.Context, wait time.Duration) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var first *typingTurn
	for address, at := range t.turns {
		if now.After(at.endsAt) {
			delete(t.turns, address)
			continue
		}
		if quiet := t.pace.PausedUntil(address.Chat); quiet.After(at.nextShowing) {
			at.nextShowing = quiet
		}
		if !at.suppressed && (first == nil || at.nextShowing.Before(first.nextShowing)) {
			to, first = address, at
		}
	}
	t.wakesAt = time.Time{}
	if first == nil || ctx.Err() != nil {
		return to, nil, 0
	}
	t.wakesAt = first.nextShowing
	if wait = first.nextShowing.Sub(now); wait > 0 {
		return to, nil, wait
	}
	call, t.cancelCall = context.WithTimeout(ctx, typingTimeout)
	t.showing = to
	first.nextShowing = now.Add(defaultTypingFades)
	return to, call, 0
}

// planNext plans when to show the sign again: early enough that it does not fade.
func (t *typing) planNext(to bus.Address, fades time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancelCall()
	t.cancelCall = nil
	if fades <= 0 || err != nil {
		fades = defaultTypingFades
	}
	if at := t.turns[to]; at != nil {
		at.nextShowing = time.Now().Add(max(fades*4/5, time.Second))
	}
}
