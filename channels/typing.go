package channels

import (
	"context"
	"sync"
	"time"

	"parley/bus"
)

const (
	// typingDelay spares those turns a call that are answered at once.
	typingDelay   = 300 * time.Millisecond
	typingLongest = 30 * time.Minute
	typingTimeout = 5 * time.Second
	typingFades   = 5 * time.Second // where the channel does not say
)

// A typing shows where the bot is at work. It is one goroutine however many
// chats there are, and it sleeps while no turn runs.
type typing struct {
	typer Typer
	pace  *pacer        // for the pauses that platforms ask for
	wake  chan struct{} // the earliest time may have changed

	mu      sync.Mutex
	turns   map[bus.Address]*typist
	planned time.Time // when show wakes by itself; zero is never
	// showing is the call under way and how to end it.
	showing bus.Address
	hush    context.CancelFunc
}

type typist struct {
	turn   string
	next   time.Time // to show it
	end    time.Time
	silent bool // something was sent meanwhile
}

func newTyping(t Typer, pace *pacer) *typing {
	return &typing{typer: t, pace: pace, wake: make(chan struct{}, 1), turns: map[bus.Address]*typist{}}
}

// missed forgets all turns where events were lost: rather no sign than one that
// never ends.
func (t *typing) missed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.turns)
}

func (t *typing) heard(e bus.Event) {
	if e.Route.Chat == "" {
		return
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.turns[e.Route]
	switch e.Type {
	case bus.TurnStart:
		at = &typist{turn: e.Turn, next: now.Add(typingDelay), end: now.Add(typingLongest)}
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
		if at == nil || at.turn != e.Turn || !at.silent {
			return
		}
		at.silent, at.next = false, now.Add(typingFades)
	default:
		return
	}
	if t.planned.IsZero() || at.next.Before(t.planned) {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// silence keeps an address from being shown at work once something is sent
// there. A nil typing shows nothing anyway.
func (t *typing) silence(to bus.Address, turn string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.turns[to]
	if at == nil || at.turn != turn {
		return
	}
	at.silent = true
	if t.hush != nil && t.showing == to {
		t.hush()
	}
}

func (t *typing) show(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		to, call, wait := t.due(ctx)
		if call != nil {
			fades, err := t.typer.Typing(call, to)
			t.pace.limited(to.Chat, err)
			t.shown(to, fades, err)
			continue
		}
		if wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-timer.C:
		}
	}
}

// due returns where it is to be shown now, with the context of the call; or how
// long there is nothing to do, 0 being until somebody stirs.
func (t *typing) due(ctx context.Context) (to bus.Address, call context.Context, wait time.Duration) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	var first *typist
	for address, at := range t.turns {
		if now.After(at.end) {
			delete(t.turns, address)
			continue
		}
		if quiet := t.pace.until(address.Chat); quiet.After(at.next) {
			at.next = quiet
		}
		if !at.silent && (first == nil || at.next.Before(first.next)) {
			to, first = address, at
		}
	}
	t.planned = time.Time{}
	if first == nil || ctx.Err() != nil {
		return to, nil, 0
	}
	t.planned = first.next
	if wait = first.next.Sub(now); wait > 0 {
		return to, nil, wait
	}
	call, t.hush = context.WithTimeout(ctx, typingTimeout)
	t.showing = to
	first.next = now.Add(typingFades)
	return to, call, 0
}

// shown plans the next time, early enough that the sign does not fade.
func (t *typing) shown(to bus.Address, fades time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hush()
	t.hush = nil
	if fades <= 0 || err != nil {
		fades = typingFades
	}
	if at := t.turns[to]; at != nil {
		at.next = time.Now().Add(max(fades*4/5, time.Second))
	}
}
