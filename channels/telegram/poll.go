package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

	p := &poller{publisher: &publisher{channel: c, publish: publish}, prefetched: c.first.take(), lastUpdate: time.Now()}
	p.backlog = newBacklog(p.publisher)
	err := p.run(ctx)
	cancel()
	p.backlog.handling.Wait()
	p.confirm(context.WithoutCancel(ctx))
	p.answering.Wait()
	return err
}

// A prefetch is the first poll, made before Receive was called.
type prefetch struct {
	mu       sync.Mutex
	received bool          // whether Receive was called, which polls itself from then on
	batch    chan []update // gets what the poll has brought, and is closed without it if the poll fails; nil if there is none
}

// Prefetch makes the first poll. It confirms nothing, and keeps what Telegram gives for Receive. If
// it fails, nothing is logged: Receive polls again.
func (c *Channel) Prefetch(ctx context.Context) {
	if c.ReceivesHTTP() {
		return
	}
	c.first.mu.Lock()
	if c.first.received || c.first.batch != nil {
		c.first.mu.Unlock()
		return
	}
	given := make(chan []update, 1)
	c.first.batch = given
	c.first.mu.Unlock()
	defer close(given)
	if batch, err := c.getUpdates(ctx, 0, pollBatch, pollSeconds); err == nil {
		given <- batch
	}
}

// take returns where the result of the prefetch arrives, for the first call; nil if there is none.
func (p *prefetch) take() <-chan []update {
	p.mu.Lock()
	defer p.mu.Unlock()
	given := p.batch
	p.received, p.batch = true, nil
	return given
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
	prefetched <-chan []update // the result of the prefetch; nil once it was received, or if there is none
	backlog    *backlog
	wait       backoff.Series

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
	offset := p.backlog.offset()
	batch, err := p.channel.getUpdates(ctx, offset, limit, seconds)
	if err == nil {
		p.confirmed = offset
	}
	return batch, err
}

// getUpdates asks Telegram for updates from that offset on, waiting up to that many seconds for one.
func (c *Channel) getUpdates(ctx context.Context, offset int64, limit, seconds int) (batch []update, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+pollGrace)
	defer cancel()
	err = c.call(ctx, "getUpdates", pollParams{Offset: offset, Limit: limit, Timeout: seconds, Allowed: allowedUpdates()}, &batch)
	c.pollReachability.Note(err)
	return batch, err
}

// firstBatch returns what the prefetch has brought, once it is there; false if there is none.
func (p *poller) firstBatch(ctx context.Context) (batch []update, ok bool) {
	if p.prefetched == nil {
		return nil, false
	}
	select {
	case batch, ok = <-p.prefetched:
	case <-ctx.Done():
	}
	p.prefetched = nil
	return batch, ok
}

// run polls, and publishes the updates, until ctx is done or Telegram refuses the account.
func (p *poller) run(ctx context.Context) error {
	for ctx.Err() == nil {
		seconds := pollSeconds
		if p.outageCode != "" || !p.backlog.isEmpty() {
			seconds = 0 // learn at once that the outage is over, or which updates have come
		}
		var err error
		batch, ok := p.firstBatch(ctx)
		if !ok {
			batch, err = p.poll(ctx, pollBatch, seconds)
		}
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

// publishReceived publishes the content of one update, retrying until that succeeds. It
// returns false if ctx ended first.
func (p *publisher) publishReceived(ctx context.Context, h updateContent) bool {
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
// ErrNotAdmitted if store returns that. subject says in the log what is stored.
func (p *publisher) retryUntilStored(ctx context.Context, subject string, store func() error) error {
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
				slog.String("message", subject), slog.Any("error", err))
		}
		if !backoff.Sleep(ctx, wait.Next(maxOwnWait)) {
			return ctx.Err()
		}
	}
}
