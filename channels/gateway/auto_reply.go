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

// explain marks a message that was not accepted, and posts the reason in its chat or thread, at most once a minute
// for each address, as a reply if the platform has replies.
func (d *receiver) explain(in bus.Inbound, text string) {
	if d.reactions != nil {
		d.reactions.MarkRefused(in)
		text += textMarked
	}
	d.toAdmitted.enqueueOnce(in.At.String(), explanationInterval, autoReply{key: in.ID + "#refused", to: in.At, replyTo: in.ReplyTo, compose: fixedText(text)})
}

// refuse tells a stranger their id and how they can be admitted: openly in a private chat, and in a group only if
// the platform can show it to them alone.
func (d *receiver) refuse(in bus.Inbound) {
	person, at := in.From.ID, in.At
	t := autoReply{key: in.ID + "#refused", to: at, compose: func(ctx context.Context) (string, error) {
		return d.refusalText(ctx, in, at)
	}}
	if !in.Group {
		d.toStrangers.enqueueOnce(person, refusalInterval, t)
		return
	}
	w, can := channels.AsWhisperer(d.Channel)
	if !can {
		return
	}
	whisper := d.whisperTo(in)
	t.to, t.onlyFor = whisper.to, whisper.onlyFor
	t.compose = func(ctx context.Context) (string, error) {
		alone, err := w.PrivateChat(ctx, person)
		if err != nil {
			return "", fmt.Errorf("find a person's own chat: %w", err)
		}
		return d.refusalText(ctx, in, alone)
	}
	d.toStrangers.enqueueOnce("whisper "+person, whisperInterval, t)
}

// whisperTo returns an automatic reply to a message, in the same place but visible only to its sender.
func (d *receiver) whisperTo(in bus.Inbound) autoReply {
	to := in.At
	if to.Thread == in.ReplyTo { // the message itself would begin that thread, which does not exist yet
		to.Thread = ""
	}
	_, user, _ := strings.Cut(in.From.ID, ":")
	return autoReply{to: to, onlyFor: user}
}

// refusalText returns the text that tells a stranger how they can be admitted under the channel's policy. For the
// policy "pairing" it records their request in the book.
func (d *receiver) refusalText(ctx context.Context, in bus.Inbound, at bus.Address) (string, error) {
	person := in.From.ID
	who := fmt.Sprintf(textUnknownID, person)
	switch d.Gate.settings().policy() {
	case policyPairing:
		chat := bus.Address{Channel: at.Channel, Chat: at.Chat}
		asked, err := d.Pairings.RequestPairing(ctx, person, chat.String())
		if err != nil {
			return "", fmt.Errorf("ask for admission: %w", err)
		}
		if asked.Approved { // an owner has approved the request in the meantime
			return textAdmittedMeanwhile, nil
		}
		d.noteName(ctx, in.From)
		d.announceRequest(ctx, in, asked)
		return who + textAskForPairing(asked.Code), nil
	case policyList:
		_, user, _ := strings.Cut(person, ":")
		return who + fmt.Sprintf(textAskForListing, d.Name, user), nil
	case policyMembers:
		return who + textMembersOnly, nil
	}
	return who, nil
}

// fixedText returns a compose function that always returns the same text.
func fixedText(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

const (
	autoReplyQueue       = 64
	autoReplyTimeout     = 30 * time.Second
	maxAutoReplyAttempts = 3
)

// An autoReplier posts messages that no agent wrote, such as the reason why a message was not accepted. It has its
// own goroutine and bypasses the bus and the book; when in doubt it posts nothing, rather than delay anybody or say
// something twice.
type autoReplier struct {
	ch     channels.Channel
	now    func() time.Time
	pauses *pacing.Pacer // for the pauses that the platform asks for
	pace   *rate.Limiter
	queue  chan autoReply

	mu             sync.Mutex
	recentByPeriod map[time.Duration]*recentKeys
}

// An autoReply is a message or an action in the queue of an autoReplier.
type autoReply struct {
	attempts int
	key      string
	to       bus.Address
	onlyFor  string // the only user who sees it; "" means that everybody does
	replyTo  string // the platform's id of the message to quote, if any
	compose  func(context.Context) (string, error)
	onSent   func(context.Context, error) // if set, called with the error from sending, or nil
	// run, if set, is called instead of composing and sending a text. It does something else on the platform, such
	// as adding a reaction.
	run func(context.Context) error
}

func newAutoReplier(ch channels.Channel, now func() time.Time, quiet *pacing.Pacer, pace *rate.Limiter) *autoReplier {
	return &autoReplier{ch: ch, now: now, pauses: quiet, pace: pace, queue: make(chan autoReply, autoReplyQueue), recentByPeriod: map[time.Duration]*recentKeys{}}
}

// enqueueOnce queues a reply unless one was queued for that person or address within the period. A reply that is
// dropped because the rate limit or the queue has no room does not count, so the person's next message gets one.
func (t *autoReplier) enqueueOnce(whom string, every time.Duration, next autoReply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := t.recentByPeriod[every]
	if told == nil {
		told = newRecentKeys(every)
		t.recentByPeriod[every] = told
	}
	if !told.add(whom, t.now()) {
		return
	}
	if !t.enqueue(next) {
		told.forget(whom)
	}
}

// enqueue queues a reply. It returns false if the rate limit or the queue has no room.
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

// run sends queued replies until ctx is done.
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

// postpone reports whether the platform has asked for a pause in the reply's chat; if so, it queues the reply again
// after the pause, unless it has done so too often, or the queue is full then.
func (t *autoReplier) postpone(next autoReply) bool {
	wait := time.Until(t.pauses.PausedUntil(next.to.Chat))
	if wait <= 0 {
		return false
	}
	if next.attempts++; next.attempts <= maxAutoReplyAttempts {
		time.AfterFunc(wait, func() {
			select {
			case t.queue <- next:
			default: // the queue is full, and the reply is late anyway
				next.reportOutcome(context.Background(), errPausedTooLong)
			}
		})
		return true
	}
	next.reportOutcome(context.Background(), errPausedTooLong)
	return true
}

// errPausedTooLong says that a reply was dropped because the platform's pauses lasted too long.
var errPausedTooLong = errors.New("the platform wants nothing now")

// send composes and sends a reply once; of a text that is too long for one message, only the beginning. It reports a
// failure only to the reply's sent function.
func (t *autoReplier) send(ctx context.Context, next autoReply) {
	ctx, cancel := context.WithTimeout(ctx, autoReplyTimeout)
	defer cancel()
	if next.run != nil {
		if t.pauses.NoteLimit(next.to.Chat, next.run(ctx)) > 0 {
			t.postpone(next)
		}
		return
	}
	text, err := next.compose(ctx)
	if err != nil {
		next.reportOutcome(ctx, err)
		return
	}
	limits := t.ch.Limits()
	pieces := markup.Render(text, limits.Dialect, limits.Length)
	if len(pieces) == 0 {
		return
	}
	part := channels.Part{Key: next.key, Text: pieces[0].Text, Plain: pieces[0].Plain, ReplyTo: next.replyTo}
	err = t.deliver(ctx, next, part)
	if t.pauses.NoteLimit(next.to.Chat, err) > 0 && t.postpone(next) {
		return
	}
	next.reportOutcome(ctx, err)
}

// reportOutcome calls the reply's sent function, if it has one, with the error from sending; nil means that the
// reply was sent.
func (r autoReply) reportOutcome(ctx context.Context, err error) {
	if r.onSent != nil {
		r.onSent(ctx, err)
	}
}

// deliver sends a part: as a whisper if the reply is for only one person and the platform has whispers.
func (t *autoReplier) deliver(ctx context.Context, next autoReply, part channels.Part) error {
	if w, can := channels.AsWhisperer(t.ch); can && next.onlyFor != "" {
		return w.Whisper(ctx, next.to, next.onlyFor, part)
	}
	_, err := t.ch.Send(ctx, next.to, part)
	return err
}
