// Package reactions marks people's messages with reactions that show what became of them.
package reactions

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

const (
	maxQueued       = 256
	reactionTimeout = 5 * time.Second
	maxCauses       = 4096 // the maximum number of turns with several messages that are remembered
)

// Reactions marks people's messages in the background. If too many calls are waiting, it drops reactions.
type Reactions struct {
	reactor channels.Reactor
	channel string
	log     *slog.Logger
	queue   chan reaction
	pauses  Pauses

	mu     sync.Mutex
	causes map[string][]string // by turn: the messages of turns with several messages that ended recently
}

// Pauses remembers the pauses that the platform has asked for.
type Pauses interface {
	// PausedUntil returns when the pause of a chat is over.
	PausedUntil(chat string) time.Time
	// NoteLimit records a pause if err is a rate limit, and returns how long the pause is.
	NoteLimit(chat string, err error) time.Duration
}

// A reaction is a call to the platform, waiting in the queue, that marks one message.
type reaction struct {
	at      bus.Address
	message string
	show    func(context.Context, bus.Address, string) error
}

// New returns nil if the channel shows no reactions; all methods may be called on nil.
func New(ch channels.Channel, name string, log *slog.Logger, pauses Pauses) *Reactions {
	r, can := channels.AsReactor(ch)
	if !can {
		return nil
	}
	return &Reactions{reactor: r, channel: name, log: log, pauses: pauses, queue: make(chan reaction, maxQueued), causes: map[string][]string{}}
}

// MarkSeen marks a message as safely stored. It marks only what somebody said, no commands.
func (r *Reactions) MarkSeen(in bus.Inbound) {
	if r != nil && in.Kind == bus.Said {
		r.enqueue(reaction{in.At, in.ID, r.reactor.MarkSeen})
	}
}

// MarkRefused marks a message as not accepted, unless it is a command.
func (r *Reactions) MarkRefused(in bus.Inbound) {
	if r != nil && in.Kind != bus.Command {
		r.enqueue(reaction{in.At, in.ID, r.reactor.MarkFailed})
	}
}

// MarkAnswered marks each message that a turn's reply answers, once the reply has been sent. The reply is the answer,
// or says why there is none.
func (r *Reactions) MarkAnswered(out bus.Outbound) {
	if r == nil || !out.IsReply() {
		return
	}
	r.mu.Lock()
	causes := r.causes[out.Turn]
	delete(r.causes, out.Turn)
	r.mu.Unlock()
	if len(out.Causes) > 0 {
		causes = out.Causes // the event with the causes may be lost, but the message itself records them
	}
	if len(causes) == 0 {
		causes = []string{out.Turn}
	}
	show := r.reactor.MarkAnswered
	if out.Failed {
		show = r.reactor.MarkFailed
	}
	for _, message := range causes {
		r.enqueue(reaction{out.To, message, show})
	}
}

// enqueue queues a reaction, or drops it if the queue is full.
func (r *Reactions) enqueue(one reaction) {
	select {
	case r.queue <- one:
	default:
	}
}

// Heard implements bus.Listener: it remembers which messages an ended turn answers, if there are several.
func (r *Reactions) Heard(e bus.Event) {
	if e.Type != bus.TurnComplete && e.Type != bus.TurnError || len(e.Causes) < 2 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for turn := range r.causes {
		if len(r.causes) < maxCauses {
			break
		}
		delete(r.causes, turn) // forget a random one: its reaction will then appear only on the turn's first message
	}
	r.causes[e.Turn] = e.Causes
}

// Missed implements bus.Listener. It does nothing: if the event was lost, the reaction appears only on the message
// that the turn is named after.
func (r *Reactions) Missed() {}

// Run calls the platform for one queued reaction after another, until ctx is done. During a pause for a chat, it
// drops the reactions there.
func (r *Reactions) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-r.queue:
			if !r.pauses.PausedUntil(one.at.Chat).After(time.Now()) {
				r.callPlatform(ctx, one)
			}
		}
	}
}

// callPlatform asks the platform to show one reaction; if the adapter panics, that is only logged.
func (r *Reactions) callPlatform(ctx context.Context, one reaction) {
	defer func() {
		if p := recover(); p != nil {
			channels.LogPanic(r.log, "reaction", r.channel, one.message, p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, reactionTimeout)
	defer cancel()
	err := one.show(ctx, one.at, one.message)
	if err != nil {
		r.log.Debug("reaction was not shown", slog.String("channel", r.channel), slog.String("id", one.message), slog.Any("error", err))
		r.pauses.NoteLimit(one.at.Chat, err)
	}
}
