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
	pollSeconds = 50               // how long the server may hold a poll
	pollGrace   = 15 * time.Second // for the way there and back
	// pollBatch is the most that Telegram gives at once.
	pollBatch = 100
	// forgetOffsetAfter is how long no update must have come before the offset is
	// forgotten: after a week Telegram may number updates anew, from a lower id too.
	forgetOffsetAfter = 6 * 24 * time.Hour
	// confirmTimeout bounds the confirmation at shutdown.
	confirmTimeout = 2 * time.Second
	// conflict is Telegram's code while somebody else polls the same bot, and
	// conflictEvery how often that is logged.
	conflict      = "409"
	conflictEvery = time.Minute
)

// Receive hands what people say to publish until ctx is done, and then returns
// nil. The first poll goes out at once; who the bot is, is found out meanwhile.
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
	c.polling.Store(true)
	defer c.polling.Store(false)

	p := &poller{publisher: &publisher{channel: c, publish: publish}, lastUpdate: time.Now()}
	p.backlog = newBacklog(p.publisher)
	err := p.run(ctx)
	cancel()
	p.backlog.handling.Wait()
	p.confirm(context.WithoutCancel(ctx))
	p.answering.Wait()
	return err
}

// A publisher publishes what updates bring, for one run of Receive.
type publisher struct {
	channel   *Channel
	publish   func(context.Context, bus.Inbound) error
	answering sync.WaitGroup // answers to presses that are on their way
}

// A poller is one run of Receive that polls.
type poller struct {
	*publisher
	backlog *backlog
	wait    backoff.Series

	confirmed      int64 // the next that Telegram was last told
	lastUpdate     time.Time
	outageCode     string    // the code of the outage; "" while there is none
	outageLogged   bool      // this outage was logged
	conflictLogged time.Time // when a second poller was logged last
}

// pollParams is what getUpdates takes.
type pollParams struct {
	Offset  int64    `json:"offset,omitempty"`
	Limit   int      `json:"limit"`
	Timeout int      `json:"timeout"`
	Allowed []string `json:"allowed_updates"`
}

// An update holds its message as it came: one that we cannot read must not keep
// the others from being read.
type update struct {
	ID       int64           `json:"update_id"`
	Message  json.RawMessage `json:"message"`
	Edited   json.RawMessage `json:"edited_message"`
	Press    json.RawMessage `json:"callback_query"`
	Reaction json.RawMessage `json:"message_reaction"`
}

// poll asks once for what comes from the first unhandled update on, and thereby lets
// Telegram forget what came before.
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
	p.channel.polls.Note(err)
	if err != nil {
		return nil, err
	}
	p.confirmed = offset
	return batch, nil
}

// run polls and hands on until ctx is done or the account is refused.
func (p *poller) run(ctx context.Context) error {
	for ctx.Err() == nil {
		seconds := pollSeconds
		if p.outageCode != "" || !p.backlog.empty() {
			seconds = 0 // to know at once when the outage is over, and what else has come
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
			if !p.outage(ctx, err, refusal) {
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
		p.backlog.wait(ctx)
	}
	return nil
}

// outage says once that Telegram cannot be polled, and waits before the next
// attempt. It is false if ctx ended.
func (p *poller) outage(ctx context.Context, err error, refusal *channels.SendError) bool {
	wait, code := p.wait.Next(mostWait), "timeout"
	if refusal != nil {
		wait, code = max(wait, refusal.RetryAfter), refusal.Code
	}
	if p.outageCode != code {
		p.outageCode = code
		// Two who poll one bot take it from each other several times a second.
		if now := time.Now(); code != conflict || now.Sub(p.conflictLogged) > conflictEvery {
			p.outageLogged = true
			p.logOutage(ctx, code, slog.Any("error", err))
			if code == conflict {
				p.conflictLogged = now
			}
		}
	}
	return backoff.Sleep(ctx, wait)
}

// logOutage logs an outage, and what the operator is to do about it.
func (p *poller) logOutage(ctx context.Context, code string, attr slog.Attr) {
	log := p.channel.log
	switch code {
	case conflict:
		log.LogAttrs(ctx, slog.LevelWarn,
			"another process polls this bot, or a webhook is set: stop the other process or call deleteWebhook; trying on", attr)
	case "429":
		log.LogAttrs(ctx, slog.LevelWarn, "Telegram asks to poll later", attr)
	default:
		log.LogAttrs(ctx, slog.LevelWarn, "Telegram cannot be reached; trying on", attr)
	}
}

// endOutage notes that a poll has succeeded, and logs it where an outage was logged.
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

// confirm tells Telegram at shutdown what was handled, so that the next start
// does not get it again. If it fails, what comes again is known by its id.
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

// A heard is what a person has said or pressed, in an update.
type heard struct {
	update  int64
	chat    int64
	message *models.Message
	edited  bool                  // it was said earlier, and reads so now
	press   *models.CallbackQuery // in place of the message
	reacted *models.MessageReactionUpdated
}

// read reads an update; false if nobody has said or pressed anything in it.
func (u update) read() (heard, bool, error) {
	h := heard{update: u.ID}
	switch {
	case len(u.Message)+len(u.Edited) > 0:
		m, err := readMessage(slices.Concat(u.Message, u.Edited)) // never both
		if err != nil {
			return h, false, err
		}
		h.message, h.chat, h.edited = m, m.Chat.ID, len(u.Edited) > 0
	case len(u.Press) > 0:
		q := new(models.CallbackQuery)
		if err := json.Unmarshal(u.Press, q); err != nil {
			return h, false, fmt.Errorf("read a press: %w", err)
		}
		h.press, h.chat = q, pressedAt(q).Chat.ID
	case len(u.Reaction) > 0:
		r := new(models.MessageReactionUpdated)
		if err := json.Unmarshal(u.Reaction, r); err != nil {
			return h, false, fmt.Errorf("read a reaction: %w", err)
		}
		h.reacted, h.chat = r, r.Chat.ID
	default:
		return h, false, nil
	}
	return h, true, nil
}

// readMessage reads a message. What it is quoted from may be of a kind that is newer
// than we are; then it is of unknown origin, and no less a quote.
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

// publishHeard publishes what one update has brought. It is false if ctx ended first.
func (p *publisher) publishHeard(ctx context.Context, h heard) bool {
	switch {
	case h.press != nil:
		return p.publishPress(ctx, h.press)
	case h.reacted != nil:
		for _, in := range p.channel.reactions(h.reacted) {
			if p.surely(ctx, in.ID, func() error { return p.publishAt(ctx, in) }) != nil {
				return false
			}
		}
		return true
	}
	return p.publishMessage(ctx, h.message, h.edited)
}

// publishMessage publishes one message. It is false if ctx ended first.
func (p *publisher) publishMessage(ctx context.Context, m *models.Message, edited bool) bool {
	if moved, ok := p.publishMove(ctx, m); moved {
		return ok
	}
	return p.surely(ctx, fmt.Sprint(m.Chat.ID, ":", m.ID), func() error {
		in, ok, err := p.channel.inbound(ctx, m)
		if err != nil || !ok {
			return err
		}
		if edited {
			in = asEdit(in, m)
		}
		return p.publishAt(ctx, in)
	}) == nil
}

// publishAt publishes something where it was said, which of a group that has moved is
// where it was before.
func (p *publisher) publishAt(ctx context.Context, in bus.Inbound) error {
	chat, err := p.channel.moves.origin(ctx, in.At.Chat)
	if err != nil {
		return err
	}
	in.At.Chat = chat
	return p.publish(ctx, in)
}

// surely stores something, however often that takes. Its error is ctx's, or
// ErrNotAdmitted.
func (p *publisher) surely(ctx context.Context, what string, store func() error) error {
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
		if !backoff.Sleep(ctx, wait.Next(ownWait)) {
			return ctx.Err()
		}
	}
}
