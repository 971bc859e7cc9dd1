package channels

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
)

const (
	reactionQueue   = 256
	reactionTimeout = 5 * time.Second
)

// A reactions shows at people's messages what becomes of them, beside all else:
// what there is no room for is not shown.
type reactions struct {
	reacter Reacter
	channel string
	log     *slog.Logger
	queue   chan reaction
	pace    *pacer // for the pauses that platforms ask for

	mu     sync.Mutex
	causes map[string][]string // of turns that have ended lately
}

type reaction struct {
	at      bus.Address
	message string
	show    func(context.Context, bus.Address, string) error
}

// newReactions is nil where a channel shows none.
func newReactions(ch Channel, name string, log *slog.Logger, pace *pacer) *reactions {
	r, can := reacter(ch)
	if !can {
		return nil
	}
	return &reactions{reacter: r, channel: name, log: log, pace: pace, queue: make(chan reaction, reactionQueue), causes: map[string][]string{}}
}

// seen shows that a message is durable.
func (r *reactions) seen(in bus.Inbound) {
	if r != nil && in.Kind == bus.Said {
		r.show(reaction{in.At, in.ID, r.reacter.Seen})
	}
}

// refused shows that a message was not taken.
func (r *reactions) refused(in bus.Inbound) {
	if r != nil && in.Kind != bus.Command {
		r.show(reaction{in.At, in.ID, r.reacter.Failed})
	}
}

// answered shows that a turn's reply was sent, at each message that it answers:
// that it is the answer, or why there is none.
func (r *reactions) answered(out bus.Outbound) {
	if r == nil || !isReply(out) {
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
	show := r.reacter.Answered
	if out.Failed {
		show = r.reacter.Failed
	}
	for _, message := range causes {
		r.show(reaction{out.To, message, show})
	}
}

// isReply tells a turn's answer from what else it says. A turn's id is that of
// the first message that it answers, and its answer's is made of it.
func isReply(out bus.Outbound) bool { return out.Turn != "" && out.ID == replyTo(out.Turn) }

func replyTo(turn string) string { return turn + "#reply" }

func (r *reactions) show(one reaction) {
	select {
	case r.queue <- one:
	default:
	}
}

// heard keeps in mind which messages a turn answers.
func (r *reactions) heard(e bus.Event) {
	if e.Type != bus.TurnComplete && e.Type != bus.TurnError || len(e.Causes) < 2 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.causes) >= maxRecent {
		forgetOne(r.causes)
	}
	r.causes[e.Turn] = e.Causes
}

func (r *reactions) missed() {}

// run calls the platform, one reaction after the other. While that asks for
// patience in a chat, reactions there are left out.
func (r *reactions) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case one := <-r.queue:
			if !r.pace.until(one.at.Chat).After(time.Now()) {
				r.call(ctx, one)
			}
		}
	}
}

func (r *reactions) call(ctx context.Context, one reaction) {
	defer func() {
		if p := recover(); p != nil {
			panicLogged(r.log, "reaction", r.channel, one.message, p)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, reactionTimeout)
	defer cancel()
	err := one.show(ctx, one.at, one.message)
	if err != nil {
		r.log.Debug("reaction was not shown", slog.String("channel", r.channel), slog.String("id", one.message), slog.Any("error", err))
		r.pace.limited(one.at.Chat, err)
	}
}
