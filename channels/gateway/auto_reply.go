package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
	"parley/channels/pacing"
)

// explain marks a message that was not taken, and tells its address why, at most
// once a minute, quoting it where the platform can.
func (d *intake) explain(in bus.Inbound, text string) {
	if d.reactions != nil {
		d.reactions.Refused(in)
		text += " What I did not take is marked."
	}
	d.guests.enqueueOnce(in.At.String(), explainEvery, autoReply{key: in.ID + "#refused", to: in.At, replyTo: in.ReplyTo, compose: fixedText(text)})
}

// refuse tells a stranger who they are and what would admit them: in a chat of
// their own, and where others read along so that they alone see it, if the
// platform can do that.
func (d *intake) refuse(in bus.Inbound) {
	person, at := in.From.ID, in.At
	t := autoReply{key: in.ID + "#refused", to: at, compose: func(ctx context.Context) (string, error) {
		return d.refusal(ctx, in, at)
	}}
	if !in.Group {
		d.strangers.enqueueOnce(person, refuseEvery, t)
		return
	}
	w, can := channels.AsWhisperer(d.Channel)
	if !can {
		return
	}
	whisper := d.whisperTo(in)
	t.to, t.whom = whisper.to, whisper.whom
	t.compose = func(ctx context.Context) (string, error) {
		alone, err := w.Alone(ctx, person)
		if err != nil {
			return "", fmt.Errorf("find a person's own chat: %w", err)
		}
		return d.refusal(ctx, in, alone)
	}
	d.strangers.enqueueOnce("whisper "+person, whisperEvery, t)
}

// whisperTo is a reply where a message was said, for its sender alone.
func (d *intake) whisperTo(in bus.Inbound) autoReply {
	to := in.At
	if to.Thread == in.ReplyTo { // the thread that it would begin is not there yet
		to.Thread = ""
	}
	_, user, _ := strings.Cut(in.From.ID, ":")
	return autoReply{to: to, whom: user}
}

func (d *intake) refusal(ctx context.Context, in bus.Inbound, at bus.Address) (string, error) {
	person := in.From.ID
	who := fmt.Sprintf("You are `%s`, and this bot does not know you yet.", person)
	switch d.Gate.settings().policy() {
	case byPairing:
		chat := bus.Address{Channel: at.Channel, Chat: at.Chat}
		asked, err := d.Pairings.Ask(ctx, person, chat.String())
		if err != nil {
			return "", fmt.Errorf("ask for admission: %w", err)
		}
		if asked.Approved { // meanwhile
			return "You are admitted now. Please say it again.", nil
		}
		d.noteName(ctx, in.From)
		d.announceRequest(ctx, in, asked)
		return who + " Whoever runs it admits you with this command, within the hour:\n\n```\nparley pairing approve " + asked.Code + "\n```", nil
	case byList:
		_, user, _ := strings.Cut(person, ":")
		return who + fmt.Sprintf(" Whoever runs it admits you by adding your id to its configuration:\n\n```\n[channels.%s]\nallow_from = [%q]\n```", d.Name, user), nil
	case byMembers:
		return who + " Only full members of this workspace may talk to it.", nil
	}
	return who, nil
}

func fixedText(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

const (
	autoReplyQueue   = 64
	autoReplyTimeout = 30 * time.Second
	autoReplyTries   = 3
)

// An autoReplier says things that nobody asked the agent for: why a message was not
// taken. It sends past the bus and the book, by its own goroutine, and rather
// says nothing than delays anybody or repeats itself.
type autoReplier struct {
	ch     channels.Channel
	now    func() time.Time
	pauses *pacing.Pacer // for the pauses that the platform asks for
	pace   *rate.Limiter
	queue  chan autoReply

	mu     sync.Mutex
	lately map[time.Duration]*recent
}

type autoReply struct {
	tries   int
	key     string
	to      bus.Address
	whom    string // the user who alone is to see it; "" is everybody
	replyTo string // the platform's id of the message to quote, if any
	compose func(context.Context) (string, error)
	sent    func(context.Context, error) // if set, is told how it ended
	// act is done instead of composing and sending a text, where it is set.
	act func(context.Context) error
}

func newAutoReplier(ch channels.Channel, now func() time.Time, quiet *pacing.Pacer, pace *rate.Limiter) *autoReplier {
	return &autoReplier{ch: ch, now: now, pauses: quiet, pace: pace, queue: make(chan autoReply, autoReplyQueue), lately: map[time.Duration]*recent{}}
}

// enqueueOnce says it unless something was said to that person or address lately.
// What the pace or the queue has no room for is not counted as said: whoever
// speaks again is told then.
func (t *autoReplier) enqueueOnce(whom string, every time.Duration, next autoReply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.lately[every]
	if told == nil {
		told = newRecent(every)
		t.lately[every] = told
	}
	if !told.add(whom, t.now()) {
		return
	}
	if !t.enqueue(next) {
		told.forget(whom)
	}
}

func (t *autoReplier) enqueue(next autoReply) bool {
	if !t.pace.AllowN(t.now(), 1) {
		return false
	}
	select {
	case t.queue <- next:
		return true
	default:
		return false
	}
}

func (t *autoReplier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-t.queue:
			if !t.postpone(next) {
				t.send(ctx, next)
			}
		}
	}
}

// postpone lets what goes to a chat wait in which the platform wants nothing now.
func (t *autoReplier) postpone(next autoReply) bool {
	wait := time.Until(t.pauses.Until(next.to.Chat))
	if wait <= 0 {
		return false
	}
	if next.tries++; next.tries <= autoReplyTries {
		time.AfterFunc(wait, func() {
			select {
			case t.queue <- next:
			default: // there is no room, and it is late
				next.ended(context.Background(), errLate)
			}
		})
		return true
	}
	next.ended(context.Background(), errLate)
	return true
}

// errLate says that the platform wanted nothing for too long.
var errLate = errors.New("the platform wants nothing now")

// send does its best: there is nobody to tell that somebody could not be told.
func (t *autoReplier) send(ctx context.Context, next autoReply) {
	ctx, cancel := context.WithTimeout(ctx, autoReplyTimeout)
	defer cancel()
	if next.act != nil {
		if t.pauses.Limited(next.to.Chat, next.act(ctx)) > 0 {
			t.postpone(next)
		}
		return
	}
	text, err := next.compose(ctx)
	if err != nil {
		next.ended(ctx, err)
		return
	}
	limits := t.ch.Limits()
	pieces := markup.Render(text, limits.Dialect, limits.Length)
	if len(pieces) == 0 {
		return
	}
	part := channels.Part{Key: next.key, Text: pieces[0].Text, Plain: pieces[0].Plain, ReplyTo: next.replyTo}
	err = t.deliver(ctx, next, part)
	if t.pauses.Limited(next.to.Chat, err) > 0 && t.postpone(next) {
		return
	}
	next.ended(ctx, err)
}

func (r autoReply) ended(ctx context.Context, err error) {
	if r.sent != nil {
		r.sent(ctx, err)
	}
}

func (t *autoReplier) deliver(ctx context.Context, next autoReply, part channels.Part) error {
	if w, can := channels.AsWhisperer(t.ch); can && next.whom != "" {
		return w.Whisper(ctx, next.to, next.whom, part)
	}
	_, err := t.ch.Send(ctx, next.to, part)
	return err
}
