// Package dispatch sends the bot's messages from the bus to the platform: each once, in
// order, and within the rate limits.
//
// Read dispatch.go first: the Dispatcher. run.go builds what the Dispatcher consists of while it runs, mailbox.go
// claims and settles mailboxes, and stages.go takes one message, a delivery (delivery.go), through its stages;
// outcome.go describes how a delivery can end. The stages are:
//
//   - alternative.go: a message that depends on another may get a different text.
//   - duplicates.go: a message may only replace another one that was sent by mistake.
//   - recording.go: the message and its parts (plan.go) are recorded in the book.
//   - sending.go: each part is sent. interrupted_sends.go finds out about parts whose sending was cut off,
//     transmission.go sends a part to the platform, and send_errors.go decides what to do if the platform does not
//     accept it: send it in another form (withdrawals.go), without its file (files.go), later (retry_policy.go), or
//     not at all (abandoner.go, fallbacks.go).
//   - session_notice.go: the session of a chat is told what was posted there.
//
// The stages share the remaining files: clearance.go (the rate limits and the lease), ledger.go (writes to the
// book), rendering.go, subjects.go, notices.go, tracing.go (spans), and the reasons in words (texts.go).
// failure_streaks.go counts failures in a row, retry_schedule.go plans when to try again, and moved_chats.go remembers
// chats whose ids have changed.
//
// typing.go shows people that the bot is at work; package drafts shows what it is about to say. reply.go plans the
// record of an answer for whoever publishes the answer.
package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/bus"
	"parley/bus/trace"
	"parley/channels"
	"parley/channels/files"
	"parley/channels/pacing"
)

// A Bus lists what a Dispatcher needs from a bus.
type Bus interface {
	bus.Bus
	bus.Holder
	bus.Pauser
	bus.Events
	bus.Inspector
}

// A Dispatcher sends the bot's messages through one channel. It works while this process holds the name
// "dispatch/NAME" (see bus.Holder), so only one process in the fleet sends for a channel and can keep its rate
// limits exactly. It sends messages to one address in order; addresses do not wait for each other.
//
// The book records each part as sending before the platform is called, and the outcome right after. If a Dispatcher
// finds a part recorded as sending, the send was cut off. It then asks the platform whether the part arrived, if
// the platform can tell; otherwise the send counts as interrupted, and Policy.OnUnknown decides. An edit that was
// cut off is simply repeated, which does no harm.
type Dispatcher struct {
	Name    string // the channel's name in the configuration
	Channel channels.Channel
	Bus     Bus
	Book    channels.Sends
	// Subjects, if set, connects messages about the same subject: a later one replaces the earlier one if the
	// channel can edit it, and otherwise is posted under it.
	Subjects channels.Subjects
	// Drafts, if set, lets the Dispatcher show unfinished answers on channels that can show them.
	Drafts channels.Drafts
	// Files, if set, stores the files that messages name.
	Files files.Store
	// MayShorten reports whether a very long text from a session may be sent as a file, with its beginning in the
	// chat: true if all processes that may continue the message can do that. Nil means no.
	MayShorten func(ctx context.Context) bool
	// MayGrow, if set, reports whether a draft may start as a message that grows: true if all processes that may
	// have to replace it can do that.
	MayGrow func(ctx context.Context) bool
	Policy  Policy
	// Notify, if set, is called for a message that is given up, before it becomes a dead letter. It may be called
	// more than once for one message.
	Notify func(ctx context.Context, out bus.Outbound, reason string) error
	// SessionAt, if set, returns the session that a reply at an address would reach, and "" where no agent listens.
	// That session is told what was posted there. If it returns an error, for example because the book can't be
	// read now, it is called again later.
	SessionAt func(ctx context.Context, at bus.Address) (session string, err error)
	Log       *slog.Logger
	// Observe, if set, is called for each send whose outcome counts, with "sent", "failed" or "unknown" and the
	// time that the platform took.
	Observe func(result string, took time.Duration)
	// Trace, if set, takes the spans of deliveries.
	Trace trace.Recorder
	// Point, if set, is called with a name at each line where a crash would matter: tests kill the process there.
	Point func(name string)

	running atomic.Pointer[run] // the run that claims mailboxes now; nil if none does
}

// Policy says how long and how often a Dispatcher tries. A zero field means its default.
type Policy struct {
	// OnUnknown says what to do with a part if nobody can tell whether it was sent: "resend" it (the default) or
	// "drop" it.
	OnUnknown string
	// GiveUp is the age at which a message is given up, once it has been tried ten times.
	// Default: a day.
	GiveUp time.Duration
	// FallbackAfter applies to messages with a fallback address. A message that is older than this goes there once
	// sends to its own address have failed for this long and at least five times. Default: 15 minutes.
	FallbackAfter time.Duration
	// Drain is how long sends may continue after the context of Run has ended. Default: 10 s.
	Drain time.Duration
	// Timeout bounds one send; a file may take five times as long. Default: a minute.
	Timeout time.Duration
	// MaxAddresses is the number of addresses to which messages are sent at the same time. Default: 256.
	MaxAddresses int
	// Stream says how unfinished answers are shown: with "", in the way that looks best on the platform; with
	// StreamEdit, as messages that are edited; with StreamOff, not at all.
	Stream string
}

// The other values of Policy.Stream.
const (
	StreamEdit = "edit"
	StreamOff  = "off"
)

// onUnknownDrop is the other value of OnUnknown.
const onUnknownDrop = "drop"

func (d Policy) withDefaults() Policy {
	if d.GiveUp <= 0 {
		d.GiveUp = 24 * time.Hour
	}
	if d.FallbackAfter <= 0 {
		d.FallbackAfter = 15 * time.Minute
	}
	if d.Drain <= 0 {
		d.Drain = 10 * time.Second
	}
	if d.Timeout <= 0 {
		d.Timeout = time.Minute
	}
	if d.MaxAddresses <= 0 {
		d.MaxAddresses = 256
	}
	return d
}

// maxHold is how long the mail of one address is worked on before other addresses get their
// turn.
const maxHold = pacing.LongestWait

// Run sends messages until ctx is done, lets sends in flight finish, and returns nil. If
// the platform refuses this account, it returns the channel's error and gives no message
// up.
func (d *Dispatcher) Run(ctx context.Context) error {
	r := newRun(d)
	err := bus.WhileHeld(ctx, d.Bus, "dispatch/"+d.Name, func(held context.Context) error {
		err := r.serve(held)
		if err == nil && ctx.Err() == nil {
			r.log.Warn("dispatch was lost and is taken again")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("send through %s: %w", d.Name, err)
	}
	return nil
}
