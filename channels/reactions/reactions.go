// Package reactions shows at people's messages what becomes of them.
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
	reactionQueue   = 256
	reactionTimeout = 5 * time.Second
	maxCauses       = 4096 // turns of which several messages are remembered
)

// Reactions shows at people's messages what becomes of them, beside all else:
// what there is no room for is not shown.
type Reactions struct {
	reactor channels.Reactor
	channel string
	log     *slog.Logger
	queue   chan reaction
	pauses  Pauses

	mu     sync.Mutex
	causes map[string][]string // of turns that have ended lately
}

// Pauses are those that the platform asks for.
type Pauses interface {
	// Until is when the pause of a chat is over.
	Until(chat string) time.Time
	// Limited takes note of an error by which the platform asks for one, and
	// returns how long it is.
	Limited(chat string, err error) time.Duration
}

type reaction struct {
	at      bus.Address
	message string
	show    func(context.Context, bus.Address, string) error
}

// New is nil where a channel shows none.
func New(ch channels.Channel, name string, log *slog.Logger, pauses Pauses) *Reactions {
	r, can := channels.AsReactor(ch)
	if !can {
		return nil
	}
	return &Reactions{reactor: r, channel: name, log: log, pauses: pauses, queue: make(chan reaction, reactionQueue), causes: map[string][]string{}}
}

// Seen shows that a message is durable.
func (r *Reactions) Seen(in bus.Inbound) {
	if r != nil && in.Kind == bus.Said {
		r.show(reaction{in.At, in.ID, r.reactor.Seen})
	}
}

// Refused shows that a message was not taken.
func (r *Reactions) Refused(in bus.Inbound) {
	if r != nil && in.Kind != bus.Command {
		r.show(reaction{in.At, in.ID, r.reactor.Failed})
	}
}

// Answered shows that a turn's reply was sent, at each message that it answers:
// that it is the answer, or why there is none.
func (r *Reactions) Answered(out bus.Outbound) {
	if r == nil || !out.IsReply() {
		return
	}
	r.mu.Lock()
	causes := r.causes[out.Turn]
	delete(r.causes, out.Turn)
	r.mu.Unlock()
	if len(out.Causes) > 0 {
		causes = out.Causes // what has happened is news, and this is a record
	}
	if len(causes) == 0 {
		causes = []string{out.Turn}
	}
	show := r.reactor.Answered
	if out.Failed {
		show = r.reactor.Failed
	}
	for _, message := range causes {
		r.show(reaction{out.To, message, show})
	}
}

func (r *Reactions) show(one reaction) {
	select {
	case r.queue <- one:
	default:
	}
}

// Heard keeps in mind which messages a turn answers.
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
		delete(r.causes, turn) // any one: what is forgotten is shown less exactly
	}
	r.causes[e.Turn] = e.Causes
}

// Missed implements bus.Listener: a reply whose causes are not known is shown at
// the message that its turn is named after.
func (r *Reactions) Missed() {}

// Run calls the platform, one reaction after the other. While that asks for
// patience in a chat, reactions there are left out.
func (r *Reactions) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-r.queue:
			if !r.pauses.Until(one.at.Chat).After(time.Now()) {
				r.call(ctx, one)
			}
		}
	}
}

func (r *Reactions) call(ctx context.Context, one reaction) {
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
		r.pauses.Limited(one.at.Chat, err)
	}
}
