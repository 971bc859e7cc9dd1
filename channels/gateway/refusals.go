package gateway

import (
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"

	"parley/bus"
)

// The rules by which a message is refused.
const (
	RuleStranger   = "stranger"        // its sender may not talk to the bot
	RuleMention    = "not_mentioned"   // it was said in a group and not to the bot
	RuleChat       = "chat_not_listed" // it was said in a group that is not among the channel's chats
	RuleFull       = "full"            // too many messages wait in its session
	RuleTooLong    = "too_long"        // it does not fit into any mailbox
	RuleNoSession  = "no_session"      // no agent answers there
	RuleUnreadable = "unreadable"      // something in it makes its handling fail
)

// A Refusal is a message that was refused, and why. It has ids and nothing that anybody wrote.
type Refusal struct {
	Rule    string
	Message string
	// Person is the sender; "" if the message was not meant for the bot, which then has nothing to do with
	// who wrote it.
	Person  string
	At      bus.Address
	Session string // the session that has no room; "" if it is another rule
}

// How many refusals are logged at the level of information: so many in a second, and at once. A stranger
// can send as many messages as the platform takes.
const (
	refusalsLogged = 10
	refusalsBurst  = 100
)

// A refusalLog logs refusals, and in a flood only some of them.
type refusalLog struct {
	log      *slog.Logger
	pace     *rate.Limiter
	unlogged atomic.Int64
}

// refused tells operators that a message was refused, by which rule, and which session it was meant for
// if that counts.
func (d *receiver) refused(in bus.Inbound, rule, session string) {
	r := Refusal{Rule: rule, Message: in.ID, Person: in.From.ID, At: in.At, Session: session}
	level := slog.LevelInfo
	if rule == RuleMention || rule == RuleChat {
		// Nor does the thread matter: on Slack each message would begin one, and have a record of its own.
		r.Person, r.At.Thread, level = "", "", slog.LevelDebug
	}
	if d.Refused != nil {
		d.Refused(r)
	}
	if level == slog.LevelInfo && !d.refusals.pace.AllowN(d.Now(), 1) {
		d.refusals.unlogged.Add(1)
		return
	}
	d.refusals.write(d.Name, level, r)
}

// write logs a refusal, with the number of those before it that came too fast to be logged.
func (l *refusalLog) write(channel string, level slog.Level, r Refusal) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	attrs := []slog.Attr{slog.String("channel", channel), slog.String("id", r.Message), slog.String("chat", r.At.String()), slog.String("rule", r.Rule)}
	if r.Person != "" {
		attrs = append(attrs, slog.String("person", r.Person))
	}
	if r.Session != "" {
		attrs = append(attrs, slog.String("session", r.Session))
	}
	if level == slog.LevelInfo {
		if n := l.unlogged.Swap(0); n > 0 {
			attrs = append(attrs, slog.Int64("unlogged", n))
		}
	}
	l.log.LogAttrs(context.Background(), level, "message refused", attrs...)
}
