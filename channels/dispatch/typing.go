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
	// typingDelay spares those turns a call that are answered at once.
	typingDelay   = 300 * time.Millisecond
	typingLongest = 30 * time.Minute
	typingTimeout = 5 * time.Second
	typingFades   = 5 * time.Second // where the channel does not say
)

// typing shows people where the bot is at work. It is one goroutine however many
// chats there are, and it sleeps while no turn runs.
type typing struct {
	typer channels.Typer
	pace  *pacing.Pacer // for the pauses that platforms ask for
	alarm alarm         // rings where the earliest time may have changed

	mu      sync.Mutex
	turns   map[bus.Address]*typingTurn
	wakesAt time.Time // when the goroutine wakes without being woken; zero is never
	// showing is the call under way and how to end it.
	showing    bus.Address
	cancelCall context.CancelFunc
}

type typingTurn struct {
	turn       string
	next       time.Time // when the sign is to be shown again
	end        time.Time
	suppressed bool // something was sent meanwhile
}

func newTyping(t channels.Typer, pace *pacing.Pacer) *typing {
	return &typing{typer: t, pace: pace, alarm: newAlarm(), turns: map[bus.Address]*typingTurn{}}
}

// Missed forgets all turns where events were lost: rather no sign than one that
// never ends.
func (t *typing) Missed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.turns)
}

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
		at = &typingTurn{turn: e.Turn, next: now.Add(typingDelay), end: now.Add(typingLongest)}
		t.turns[e.Route] = at
	case bus.TurnComplete, bus.TurnError, bus.TurnParked:
		if at == nil || at.turn != e.Turn {
			return
		}
		delete(t.turns, e.Route)
		return
	case bus.BlockStart, bus.ToolStart:
		// The turn goes on after something was sent: it may show again, but not
		// so soon that it could be news from before the send.
		if at == nil || at.turn != e.Turn || !at.suppressed {
			return
		}
		at.suppressed, at.next = false, now.Add(typingFades)
	default:
		return
	}
	if t.wakesAt.IsZero() || at.next.Before(t.wakesAt) {
		t.alarm.ring()
	}
}

// suppress keeps an address from being shown at work once something is sent
// there. A nil typing shows nothing anyway.
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

// show shows the bot at work wherever that is due, until ctx is done.
func (t *typing) show(ctx context.Context) {
	t.alarm.run(ctx, func() (sleep time.Duration) {
		for {
			to, call, wait := t.due(ctx)
			if call == nil {
				return wait
			}
			fades, err := t.typer.Typing(call, to)
			t.pace.Limited(to.Chat, err)
			t.shown(to, fades, err)
		}
	})
}

// due returns where the bot is to be shown at work now, with the context of the call; or how
// long there is nothing to do, 0 being until the alarm rings.
func (t *typing) due(ctx context.Context) (to bus.Address, call context.Context, wait time.Duration) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var first *typingTurn
	for address, at := range t.turns {
		if now.After(at.end) {
			delete(t.turns, address)
			continue
		}
		if quiet := t.pace.Until(address.Chat); quiet.After(at.next) {
			at.next = quiet
		}
		if !at.suppressed && (first == nil || at.next.Before(first.next)) {
			to, first = address, at
		}
	}
	t.wakesAt = time.Time{}
	if first == nil || ctx.Err() != nil {
		return to, nil, 0
	}
	t.wakesAt = first.next
	if wait = first.next.Sub(now); wait > 0 {
		return to, nil, wait
	}
	call, t.cancelCall = context.WithTimeout(ctx, typingTimeout)
	t.showing = to
	first.next = now.Add(typingFades)
	return to, call, 0
}

// shown plans the next time, early enough that the sign does not fade.
func (t *typing) shown(to bus.Address, fades time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancelCall()
	t.cancelCall = nil
	if fades <= 0 || err != nil {
		fades = typingFades
	}
	if at := t.turns[to]; at != nil {
		at.next = time.Now().Add(max(fades*4/5, time.Second))
	}
}
