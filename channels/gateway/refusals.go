package gateway

import (
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"

	"parley/bus"
)

// The rules by which messages are refused.
const (
	RuleStranger   = "stranger"        // its sender may not talk to the bot
	RuleMention    = "not_mentioned"   // it was said in a group and not to the bot
	RuleChat       = "chat_not_listed" // it was said in a group that is not among the channel's chats
	RuleFull       = "full"            // too many messages wait in its session
	RuleTooLong    = "too_long"        // it does not fit into any mailbox
	RuleNoSession  = "no_session"      // no agent answers there
	RuleUnreadable = "unreadable"      // something in it makes its handling fail
)

// A Refusal describes a message that was refused, and why. It contains ids and nothing that anybody wrote.
type Refusal struct {
	Rule    string
	Message string
	// Person is the sender; "" if the message was not meant for the bot, because then it is none of the bot's
	// business who wrote it.
	Person  string
	At      bus.Address
	Session string // the session that has no room for it, under RuleFull and RuleTooLong; otherwise ""
}

// How many refusals are logged at the level Info: per second, and in a burst. A stranger can send as many messages
// as the platform accepts.
const (
	refusalsLoggedPerSecond = 10
	refusalsBurst           = 100
)

// A refusalLog logs refusals; in a flood, it logs only some of them.
type refusalLog struct {
	log           *slog.Logger
	pace          *rate.Limiter
	unloggedCount atomic.Int64
}

// reportRefusal tells operators that a message was refused, by which rule, and (if that matters) which session it was
// meant for.
func (d *receiver) reportRefusal(in bus.Inbound, rule, session string) {
	r := Refusal{Rule: rule, Message: in.ID, Person: in.From.ID, At: in.At, Session: session}
	level := slog.LevelInfo
	if rule == RuleMention || rule == RuleChat {
		// The thread does not matter either: on Slack, each such message would start one and so get a record of its
		// own.
		r.Person, r.At.Thread, level = "", "", slog.LevelDebug
	}
	if d.OnRefused != nil {
		d.OnRefused(r)
	}
	if level == slog.LevelInfo && !d.refusals.pace.AllowN(d.Now(), 1) {
		d.refusals.unloggedCount.Add(1)
		return
	}
	d.refusals.write(d.Name, level, r)
}

// write logs a refusal, with the number of earlier ones that came too fast to be logged.
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
		if n := l.unloggedCount.Swap(0); n > 0 {
			attrs = append(attrs, slog.Int64("unlogged", n))
		}
	}
	l.log.LogAttrs(context.Background(), level, "message refused", attrs...)
}
