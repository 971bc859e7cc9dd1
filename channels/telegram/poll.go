package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
	"parley/channels/backoff"
)

const (
	pollSeconds = 50               // how long Telegram may hold a poll open, in seconds
	pollGrace   = 15 * time.Second // additional time for the request's way there and back
	// pollBatch is how many updates Telegram gives at once at most.
	pollBatch = 100
	// forgetOffsetAfter is the time without updates after which the poller forgets from which
	// update on to ask (the offset): after a week Telegram may number updates anew, even from a
	// lower id.
	forgetOffsetAfter = 6 * 24 * time.Hour
	// confirmTimeout bounds the last call at shutdown, which tells Telegram what was handled.
	confirmTimeout = 2 * time.Second
	// codeConflict is Telegram's code while another process polls the same bot; conflictLogEvery is
	// the least time between two log entries about that.
	codeConflict     = "409"
	conflictLogEvery = time.Minute
)

// Receive passes what people say to publish until ctx is done, and then returns nil. It fails only
// with an error of kind Stop: Telegram refuses the account. The first poll goes out at once; the
// bot's name is learned in parallel.
func (c *Channel) Receive(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	var learning sync.WaitGroup
	defer learning.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	learning.Go(func() {
		c.learnName(ctx)
		c.showMenu(ctx)
	})
	if c.ReceivesHTTP() {
		return c.receiveRequests(ctx, publish)
	}
	if err := c.removeWebhook(ctx); err != nil {
		return err
	}
	c.isPolling.Store(true)
	defer c.isPolling.Store(false)

	p := &poller{publisher: &publisher{channel: c, publish: publish}, lastUpdate: time.Now()}
	p.backlog = newBacklog(p.publisher)
	err := p.run(ctx)
	cancel()
	p.backlog.handling.Wait()
	p.confirm(context.WithoutCancel(ctx))
	p.answering.Wait()
	return err
}

// A publisher publishes the content of updates, for one run of Receive.
type publisher struct {
	channel   *Channel
	publish   func(context.Context, bus.Inbound) error
	answering sync.WaitGroup // answers to presses in progress
}

// A poller is one run of Receive that polls Telegram.
type poller struct {
	*publisher
	backlog *backlog
	wait    backoff.Series

	confirmed      int64 // the offset of the last successful poll
	lastUpdate     time.Time
	outageCode     string    // the error code of the current outage; "" if there is none
	outageLogged   bool      // whether this outage was logged
	conflictLogged time.Time // when it was last logged that another process polls too
}

// pollParams are the parameters of getUpdates.
type pollParams struct {
	Offset  int64    `json:"offset,omitempty"`
	Limit   int      `json:"limit"`
	Timeout int      `json:"timeout"`
	Allowed []string `json:"allowed_updates"`
}

// An update holds its message undecoded: a message that we cannot decode must not keep the
// other updates from being read.
type update struct {
	ID       int64           `json:"update_id"`
	Message  json.RawMessage `json:"message"`
	Edited   json.RawMessage `json:"edited_message"`
	Press    json.RawMessage `json:"callback_query"`
	Reaction json.RawMessage `json:"message_reaction"`
}

// poll asks Telegram for updates from the first unhandled one on, waiting up to that many
// seconds for one. Telegram then forgets earlier updates.
func (p *poller) poll(ctx context.Context, limit, seconds int) ([]update, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+pollGrace)
	defer cancel()
	var batch []update
	offset := p.backlog.offset()
	err := p.channel.call(ctx, "getUpdates", pollParams{
		Offset:  offset,
		Limit:   limit,
		Timeout: seconds,
		Allowed: allowedUpdates(),
	}, &batch)
	p.channel.pollReachability.Note(err)
	if err != nil {
		return nil, err
	}
	p.confirmed = offset
	return batch, nil
}

// run polls, and publishes the updates, until ctx is done or Telegram refuses the account.
func (p *poller) run(ctx context.Context) error {
	for ctx.Err() == nil {
		seconds := pollSeconds
		if p.outageCode != "" || !p.backlog.isEmpty() {
			seconds = 0 // learn at once that the outage is over, or which updates have come
		}
		batch, err := p.poll(ctx, pollBatch, seconds)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			refusal, ok := errors.AsType[*channels.SendError](err)
			if ok && refusal.Fault == channels.Stop {
				return err
			}
			if !p.handleOutage(ctx, err, refusal) {
				return nil
			}
			continue
		}
		p.endOutage(ctx)
		now := time.Now()
		if len(batch) > 0 {
			p.lastUpdate = now
		} else if now.Sub(p.lastUpdate) > forgetOffsetAfter {
			p.backlog.forgetOffset()
		}
		p.backlog.add(ctx, batch)
		p.backlog.waitForNextPoll(ctx)
	}
	return nil
}

// handleOutage logs, once for each outage, that polling fails, and waits before the next
// attempt. It returns false if ctx ended.
func (p *poller) handleOutage(ctx context.Context, err error, refusal *channels.SendError) bool {
	wait, code := p.wait.Next(maxTelegramWait), "timeout"
	if refusal != nil {
		wait, code = max(wait, refusal.RetryAfter), refusal.Code
	}
	if p.outageCode != code {
		p.outageCode = code
		// Two processes that poll one bot interrupt each other several times a second.
		if now := time.Now(); code != codeConflict || now.Sub(p.conflictLogged) > conflictLogEvery {
			p.outageLogged = true
			p.logOutage(ctx, code, slog.Any("error", err))
			if code == codeConflict {
				p.conflictLogged = now
			}
		}
	}
	return backoff.Sleep(ctx, wait)
}

// logOutage logs an outage, and what the operator should do about it.
func (p *poller) logOutage(ctx context.Context, code string, attr slog.Attr) {
	log := p.channel.log
	switch code {
	case codeConflict:
		log.LogAttrs(ctx, slog.LevelWarn,
			"another process polls this bot, or a webhook is set: stop the other process or call deleteWebhook; trying on", attr)
	case "429":
		log.LogAttrs(ctx, slog.LevelWarn, "Telegram asks to poll later", attr)
	default:
		log.LogAttrs(ctx, slog.LevelWarn, "Telegram cannot be reached; trying on", attr)
	}
}

// endOutage records that a poll has succeeded, and logs it if the outage was logged.
func (p *poller) endOutage(ctx context.Context) {
	p.wait.Reset()
	if p.outageCode == "" {
		return
	}
	p.outageCode = ""
	if p.outageLogged {
		p.channel.log.LogAttrs(ctx, slog.LevelInfo, "Telegram is polled again")
	}
	p.outageLogged = false
}

// confirm tells Telegram at shutdown which updates were handled, so that the next start
// does not get them again. If that fails, updates that come again are recognised by their
// ids.
func (p *poller) confirm(ctx context.Context) {
	if offset := p.backlog.offset(); offset == 0 || offset == p.confirmed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	if _, err := p.poll(ctx, 1, 0); err != nil {
		p.channel.log.LogAttrs(ctx, slog.LevelDebug, "the last updates are not confirmed", slog.Any("error", err))
	}
}

// A received is what one update contains: a message, a press of a button, or a change of
// reactions.
type received struct {
	update   int64
	chat     int64
	message  *models.Message
	edited   bool                           // whether the message is an older one whose text has changed
	press    *models.CallbackQuery          // set instead of the message
	reaction *models.MessageReactionUpdated // set instead of the message
}

// decode decodes an update; false if it contains neither a message nor a press nor a
// reaction.
func (u update) decode() (received, bool, error) {
	h := received{update: u.ID}
	switch {
	case len(u.Message)+len(u.Edited) > 0:
		m, err := readMessage(slices.Concat(u.Message, u.Edited)) // an update has only one of them
		if err != nil {
			return h, false, err
		}
		h.message, h.chat, h.edited = m, m.Chat.ID, len(u.Edited) > 0
	case len(u.Press) > 0:
		q := new(models.CallbackQuery)
		if err := json.Unmarshal(u.Press, q); err != nil {
			return h, false, fmt.Errorf("read a press: %w", err)
		}
		h.press, h.chat = q, pressedMessage(q).Chat.ID
	case len(u.Reaction) > 0:
		r := new(models.MessageReactionUpdated)
		if err := json.Unmarshal(u.Reaction, r); err != nil {
			return h, false, fmt.Errorf("read a reaction: %w", err)
		}
		h.reaction, h.chat = r, r.Chat.ID
	default:
		return h, false, nil
	}
	return h, true, nil
}

// readMessage decodes a message. Its origin, or the message that it replies to, may be of
// a kind newer than this release; then the rest is decoded, and a forwarded message counts
// as one of unknown origin.
func readMessage(raw json.RawMessage) (*models.Message, error) {
	m := new(models.Message)
	err := json.Unmarshal(raw, m)
	if err == nil {
		return m, nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	if _, forwarded := fields["forward_origin"]; forwarded {
		fields["forward_origin"] = json.RawMessage(`{"type":"hidden_user"}`)
	}
	delete(fields, "reply_to_message")
	delete(fields, "external_reply")
	again, encoding := json.Marshal(fields)
	m = new(models.Message)
	if encoding != nil || json.Unmarshal(again, m) != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}

// publishReceived publishes the content of one update, retrying until that succeeds. It
// returns false if ctx ended first.
func (p *publisher) publishReceived(ctx context.Context, h received) bool {
	switch {
	case h.press != nil:
		return p.publishPress(ctx, h.press)
	case h.reaction != nil:
		for _, in := range p.channel.reactionsInbound(h.reaction) {
			if p.retryUntilStored(ctx, in.ID, func() error { return p.publishAtOrigin(ctx, in) }) != nil {
				return false
			}
		}
		return true
	}
	return p.publishMessage(ctx, h.message, h.edited)
}

// publishMessage publishes one message, retrying until that succeeds. It returns false if
// ctx ended first.
func (p *publisher) publishMessage(ctx context.Context, m *models.Message, edited bool) bool {
	if moved, ok := p.recordMessageMove(ctx, m); moved {
		return ok
	}
	return p.retryUntilStored(ctx, fmt.Sprint(m.Chat.ID, ":", m.ID), func() error {
		in, ok, err := p.channel.messageInbound(ctx, m)
		if err != nil || !ok {
			return err
		}
		if edited {
			in = asEdit(in, m)
		}
		return p.publishAtOrigin(ctx, in)
	}) == nil
}

// publishAtOrigin publishes a message under its chat's original id, if the chat is a group
// that has moved.
func (p *publisher) publishAtOrigin(ctx context.Context, in bus.Inbound) error {
	chat, err := p.channel.moves.originalID(ctx, in.At.Chat)
	if err != nil {
		return err
	}
	in.At.Chat = chat
	return p.publish(ctx, in)
}

// retryUntilStored calls store until it succeeds. It fails only when ctx ends, or with
// ErrNotAdmitted if store returns that. what names the message in the log.
func (p *publisher) retryUntilStored(ctx context.Context, what string, store func() error) error {
	var wait backoff.Series
	for failures := 0; ; failures++ {
		err := store()
		if err == nil || errors.Is(err, channels.ErrNotAdmitted) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failures == 0 {
			p.channel.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
				slog.String("message", what), slog.Any("error", err))
		}
		if !backoff.Sleep(ctx, wait.Next(maxOwnWait)) {
			return ctx.Err()
		}
	}
}
