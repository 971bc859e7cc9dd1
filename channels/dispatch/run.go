package dispatch

import (
	"context"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/drafts"
	"parley/channels/markup"
	"parley/channels/pacing"
	"parley/channels/reactions"
)

// A run is one call of Dispatcher.Run: the Dispatcher and what it consists of while it works.
type run struct {
	*Dispatcher
	policy    Policy
	pace      *pacing.Pacer
	retries   *retrySchedule
	moved     *movedChats
	typing    *typing // nil if the channel can't show this; likewise the next two
	drafts    *drafts.Drafts
	reactions *reactions.Reactions
	rendering *rendering
	files     *fileSending
	abandoner *abandoner
	tracing   *tracing
	stages    []stage // the stages of a delivery, in order
	point     func(name string)
	log       *slog.Logger // names the channel
}

func newRun(d *Dispatcher) *run {
	limits := d.Channel.Limits()
	r := &run{
		Dispatcher: d, policy: d.Policy.withDefaults(),
		pace: pacing.New(d.Name, limits, d.Bus), retries: newRetrySchedule(), moved: newMovedChats(),
		rendering: &rendering{channel: d.Channel, limits: limits, renderer: markup.New()},
		tracing:   &tracing{recorder: d.Trace, channel: d.Name},
		point:     d.Point, log: d.Log.With(slog.String("channel", d.Name)),
	}
	if r.point == nil {
		r.point = func(string) {}
	}
	clearance := &clearance{pace: r.pace, log: r.log}
	ledger := &ledger{book: d.Book, clearance: clearance, drain: r.policy.Drain, log: r.log}
	if t, ok := channels.AsTyper(d.Channel); ok {
		r.typing = newTyping(t, r.pace)
	}
	r.drafts = r.newDrafts(ledger)
	r.reactions = reactions.New(d.Channel, d.Name, d.Log, r.pace)
	r.addStages(clearance, ledger)
	return r
}

// newDrafts returns nil if drafts are not shown.
func (r *run) newDrafts(l *ledger) *drafts.Drafts {
	if r.policy.Stream == StreamOff {
		return nil
	}
	return drafts.New(drafts.Config{
		Name: r.Name, Channel: r.Channel, Book: r.Book, RecordedDrafts: r.Drafts, Mail: r.Bus, Pace: r.pace, Renderer: r.rendering.renderer,
		Write:       func(work context.Context, write func(context.Context) error) error { return l.write(work, nil, write) },
		CurrentChat: r.moved.current, EditOnly: r.policy.Stream == StreamEdit, MayGrow: r.MayGrow, Workers: r.policy.MaxAddresses,
		Log: r.Log, Point: r.point,
	})
}

// addStages creates the stages of a delivery and everything they consist of.
func (r *run) addStages(clearance *clearance, ledger *ledger) {
	retries := &retryPolicy{
		policy: r.policy, channel: r.Channel, topic: bus.OutboundTopic(r.Name), bus: r.Bus, pace: r.pace,
		streaks: newFailureStreaks(), retries: r.retries, log: r.log,
	}
	notices := &notices{channel: r.Channel, bus: r.Bus, notify: r.Notify, point: r.point, log: r.log}
	r.files = &fileSending{
		channel: r.Channel, store: r.Files, notices: notices, ledger: ledger,
		inMemory: make(chan struct{}, maxFiles), point: r.point, log: r.log,
	}
	withdrawals := &withdrawals{ledger: ledger, clearance: clearance, rendering: r.rendering, retryPolicy: retries}
	r.abandoner = &abandoner{
		ledger: ledger, clearance: clearance, withdrawals: withdrawals, notices: notices,
		fallbacks: &fallbacks{channel: r.Channel, bus: r.Bus, files: r.files, log: r.log}, point: r.point, log: r.log,
	}
	subjects := &subjects{shown: r.Subjects, ledger: ledger, rendering: r.rendering, drafts: r.drafts, point: r.point}
	transmission := &transmission{
		rendering: r.rendering, ledger: ledger, clearance: clearance, retryPolicy: retries, files: r.files,
		sendErrors: &sendErrors{
			ledger: ledger, clearance: clearance, retryPolicy: retries, withdrawals: withdrawals,
			files: r.files, abandoner: r.abandoner, observe: r.observe, log: r.log,
		},
		moved: r.moved, typing: r.typing, tracing: r.tracing, observe: r.observe, point: r.point, log: r.log,
	}
	r.stages = []stage{
		&alternative{ledger: ledger},
		&duplicates{subjects: subjects, clearance: clearance, rendering: r.rendering, retryPolicy: retries},
		&recording{
			plan:   &plan{rendering: r.rendering, subjects: subjects, drafts: r.drafts, mayShorten: r.MayShorten},
			ledger: ledger, clearance: clearance, drafts: r.drafts, point: r.point,
		},
		&sending{
			ledger: ledger, clearance: clearance, transmission: transmission, abandoner: r.abandoner, subjects: subjects,
			interruptedSends: &interruptedSends{ledger: ledger, clearance: clearance, rendering: r.rendering, retryPolicy: retries, abandoner: r.abandoner},
		},
		&sessionNotice{channel: r.Channel, bus: r.Bus, sessionAt: r.SessionAt, retryPolicy: retries, point: r.point, log: r.log},
	}
}

// observe calls Observe, if it is set.
func (r *run) observe(result string, took time.Duration) {
	if r.Observe != nil {
		r.Observe(result, took)
	}
}
