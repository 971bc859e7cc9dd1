package telegram

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/channels/backoff"
)

const (
	pollSeconds = 50               // how long Telegram may hold a poll open, in seconds
	pollGrace   = 15 * time.Second // additional time for the request and the answer to travel
	// pollBatch is the maximum number of updates that Telegram delivers at once.
	pollBatch = 100
	// forgetOffsetAfter is the time without updates after which the poller forgets the offset, the id of the first
	// update to ask for: after a week, Telegram may start numbering updates from a different id, even a lower one.
	forgetOffsetAfter = 6 * 24 * time.Hour
	// confirmTimeout limits the last call at shutdown, which tells Telegram what has been handled.
	confirmTimeout = 2 * time.Second
	// codeConflict is the error code that Telegram returns while another process polls for the same bot, or while a
	// webhook is set.
	codeConflict = "409"
	// conflictLogEvery is the minimum time between two log entries about codeConflict.
	conflictLogEvery = time.Minute
)

// A pollReceiver receives by long polling.
type pollReceiver struct {
	*api
	isPolling    atomic.Bool           // whether this process polls, so that polls show whether Telegram can be reached
	reachability channels.Reachability // whether the last getUpdates reached Telegram
}

// receive polls until ctx is done or Telegram refuses the account.
func (ps *pollReceiver) receive(ctx context.Context, publish *publisher) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ps.isPolling.Store(true)
	defer ps.isPolling.Store(false)

	p := &poller{publisher: publish, polls: ps, lastUpdate: time.Now()}
	p.backlog = newBacklog(p.publisher)
	err := p.run(ctx)
	cancel()
	p.backlog.handling.Wait()
	p.confirm(context.WithoutCancel(ctx))
	p.answering.Wait()
	return err
}

// A poller is one run of Receive that polls Telegram.
type poller struct {
	*publisher
	polls   *pollReceiver
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

// poll asks Telegram for updates starting with the first unhandled one, waiting up to the given number of seconds
// for one. Telegram then forgets the earlier updates.
func (p *poller) poll(ctx context.Context, limit, seconds int) ([]update, error) {
	offset := p.backlog.offset()
	batch, err := p.polls.getUpdates(ctx, offset, limit, seconds)
	if err == nil {
		p.confirmed = offset
	}
	return batch, err
}

// getUpdates asks Telegram for updates starting with the offset, waiting up to the given number of seconds for one.
func (ps *pollReceiver) getUpdates(ctx context.Context, offset int64, limit, seconds int) (batch []update, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+pollGrace)
	defer cancel()
	err = ps.call(ctx, "getUpdates", pollParams{Offset: offset, Limit: limit, Timeout: seconds, Allowed: allowedUpdates()}, &batch)
	ps.reachability.Note(err)
	return batch, err
}

// run polls, and publishes the updates, until ctx is done or Telegram refuses the account.
func (p *poller) run(ctx context.Context) error {
	for ctx.Err() == nil {
		seconds := pollSeconds
		if p.outageCode != "" || !p.backlog.isEmpty() {
			seconds = 0 // find out immediately that the outage is over, or which updates have come
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

// handleOutage logs, once for each outage, that polling fails, and waits before the next attempt. It returns false
// if ctx ended.
func (p *poller) handleOutage(ctx context.Context, err error, refusal *channels.SendError) bool {
	wait, code := p.wait.Next(maxTelegramWait), "timeout"
	if refusal != nil {
		wait, code = max(wait, refusal.RetryAfter), refusal.Code
	}
	if p.outageCode != code {
		p.outageCode = code
		// Two processes that poll for one bot interrupt each other several times a second.
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
	log := p.log
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
		p.log.LogAttrs(ctx, slog.LevelInfo, "Telegram is polled again")
	}
	p.outageLogged = false
}

// confirm tells Telegram at shutdown which updates have been handled, so that the next process does not receive
// them again. If that fails, updates that come again are recognized by their ids.
func (p *poller) confirm(ctx context.Context) {
	if offset := p.backlog.offset(); offset == 0 || offset == p.confirmed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	if _, err := p.poll(ctx, 1, 0); err != nil {
		p.log.LogAttrs(ctx, slog.LevelDebug, "the last updates are not confirmed", slog.Any("error", err))
	}
}
