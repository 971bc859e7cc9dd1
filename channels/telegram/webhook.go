package telegram

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-telegram/bot/models"

	"parley/channels"
	"parley/channels/backoff"
	"parley/channels/telegram/webhook"
)

const (
	// webhookSecretSubject is the subject under which the book keeps the secret of a channel's webhook, which is the same
	// for all processes.
	webhookSecretSubject = "webhook secret"
	// webhookCheckEvery is how often a process checks that Telegram still has the webhook.
	webhookCheckEvery = 5 * time.Minute
	// publishTimeout is how long publishing is tried before Telegram is asked to repeat the request. It is less
	// than the time that the request waits.
	publishTimeout = 20 * time.Second
	// maxRequests is how many requests Telegram may have open at the same time.
	maxRequests = 100
)

// allowedUpdates returns the kinds of updates that we ask Telegram to send.
func allowedUpdates() []string {
	return []string{
		models.AllowedUpdateMessage, models.AllowedUpdateEditedMessage, models.AllowedUpdateCallbackQuery, models.AllowedUpdateMessageReaction,
	}
}

// A webhookReceiver receives updates by HTTP requests from Telegram.
type webhookReceiver struct {
	*identity
	webhook    string                 // the address to which Telegram sends requests; "" means that Telegram is polled
	deliveries chan webhook.Delivery  // receives the updates in those requests
	secret     atomic.Pointer[string] // the secret by which those requests are recognized
	book       Book
}

// ReceivesHTTP implements channels.HTTPReceiver: the channel receives by HTTP requests if it has a webhook.
func (rs *webhookReceiver) ReceivesHTTP() bool { return rs.webhook != "" }

// ServeHTTP implements channels.HTTPReceiver: it verifies and answers a request from Telegram, and passes on its
// update.
func (rs *webhookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rs.handler().ServeHTTP(w, r)
}

// Admits reports whether a request's header contains the secret that Telegram was given. Other requests are
// answered without reading their body.
func (rs *webhookReceiver) Admits(header http.Header) bool { return rs.handler().Admits(header) }

// handler returns the Handler that answers requests, with the current secret.
func (rs *webhookReceiver) handler() *webhook.Handler {
	h := &webhook.Handler{Deliveries: rs.deliveries}
	if secret := rs.secret.Load(); secret != nil {
		h.Secret = *secret
	}
	return h
}

// receive does what Receive does, for a channel with a webhook.
func (rs *webhookReceiver) receive(ctx context.Context, p *publisher) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	secret, err := rs.sharedSecret(ctx)
	if err != nil {
		return nil //nolint:nilerr // ctx has ended
	}
	rs.secret.Store(&secret)
	var working sync.WaitGroup
	working.Go(func() { rs.handleRequests(ctx, p) })
	err = rs.keepWebhook(ctx, secret)
	cancel()
	working.Wait()
	return err
}

// sharedSecret returns the secret by which Telegram's requests are recognized. The first process makes it for all
// others. It retries until the book answers, and fails only when ctx ends.
func (rs *webhookReceiver) sharedSecret(ctx context.Context) (string, error) {
	var wait backoff.Series
	for {
		secret, err := rs.book.SetNoteOnce(ctx, webhookSecretSubject, rs.name, rand.Text()+rand.Text())
		if err == nil {
			return secret, nil
		}
		rs.log.LogAttrs(ctx, slog.LevelWarn, "the webhook's secret cannot be read; trying on", slog.Any("error", err))
		if !backoff.Sleep(ctx, wait.Next(maxOwnWait)) {
			return "", ctx.Err()
		}
	}
}

// handleRequests publishes the updates in Telegram's requests until ctx is done. Telegram sends no second request
// for a chat before the first one is answered.
func (rs *webhookReceiver) handleRequests(ctx context.Context, p *publisher) {
	var working sync.WaitGroup
	defer func() {
		working.Wait()
		p.answering.Wait()
	}()
	for {
		select {
		case d := <-rs.deliveries:
			working.Go(func() { d.Answer(p.publishUpdate(ctx, d.Update)) })
		case <-ctx.Done():
			return
		}
	}
}

// publishUpdate publishes the update in one request, and reports whether Telegram may forget it: it has been
// published, or it never can be, because it can't be decoded or nobody says anything in it.
func (p *publisher) publishUpdate(ctx context.Context, raw json.RawMessage) bool {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var u update
	err := json.Unmarshal(raw, &u)
	var h updateContent
	var ok bool
	if err == nil {
		h, ok, err = u.decode()
	}
	if err != nil {
		p.log.LogAttrs(ctx, slog.LevelError, "an update cannot be read and is left out", slog.Int64("update", u.ID))
		return true
	}
	return !ok || p.publishReceived(ctx, h)
}

// webhookParams are the parameters of setWebhook.
type webhookParams struct {
	URL            string   `json:"url"`
	Secret         string   `json:"secret_token"`
	MaxConnections int      `json:"max_connections"`
	Allowed        []string `json:"allowed_updates"`
}

// A WebhookState is Telegram's description of a bot's webhook.
type WebhookState struct {
	URL            string `json:"url"` // "" if there is no webhook
	PendingUpdates int    `json:"pending_update_count"`
	LastError      string `json:"last_error_message"`
	LastErrorAt    int64  `json:"last_error_date"`
}

// keepWebhook sets the bot's webhook, and sets it again whenever it has been changed, until ctx is done or Telegram
// refuses the account. Every process does so with the same values.
func (rs *webhookReceiver) keepWebhook(ctx context.Context, secret string) error {
	var wait backoff.Series
	var failedAt int64
	for set := false; ctx.Err() == nil; {
		state, err := rs.checkWebhook(ctx, secret, set)
		rs.reached.Note(err)
		pause := webhookCheckEvery
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			refusal, ok := errors.AsType[*channels.SendError](err)
			if ok && refusal.Fault == channels.Stop {
				return err
			}
			if !wait.HasWaited() {
				rs.log.LogAttrs(ctx, slog.LevelWarn, "Telegram does not take the webhook yet; trying on", slog.String("url", rs.webhook), slog.Any("error", err))
			}
			if pause = wait.Next(maxTelegramWait); ok {
				pause = max(pause, refusal.RetryAfter)
			}
		default:
			wait.Reset()
			if state.LastErrorAt > failedAt && set {
				rs.log.LogAttrs(ctx, slog.LevelWarn, "Telegram could not deliver everything; it tries on",
					slog.String("url", rs.webhook), slog.String("why", state.LastError), slog.Int("waiting", state.PendingUpdates))
			}
			failedAt, set = max(failedAt, state.LastErrorAt), true
		}
		backoff.Sleep(ctx, pause)
	}
	return nil
}

// checkWebhook sets the webhook, unless this process has set it before (set) and Telegram still has it. It returns
// the webhook's state.
func (rs *webhookReceiver) checkWebhook(ctx context.Context, secret string, set bool) (WebhookState, error) {
	var state WebhookState
	if set {
		var err error
		if state, err = rs.Webhook(ctx); err != nil || state.URL == rs.webhook {
			return state, err
		}
		rs.log.LogAttrs(ctx, slog.LevelWarn, "somebody has changed the bot's webhook; it is set again")
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var done bool
	return state, rs.call(ctx, "setWebhook", webhookParams{URL: rs.webhook, Secret: secret, MaxConnections: maxRequests, Allowed: allowedUpdates()}, &done)
}

// Webhook asks Telegram for the state of the bot's webhook.
func (rs *webhookReceiver) Webhook(ctx context.Context) (WebhookState, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var state WebhookState
	return state, rs.call(ctx, "getWebhookInfo", nil, &state)
}

// removeWebhook removes a webhook that a Parley process has set earlier, because Telegram refuses polls while there
// is one. It retries until the webhook is removed, Telegram refuses the account, or ctx ends; then it returns nil. A
// webhook that another program has set stays.
func (rs *webhookReceiver) removeWebhook(ctx context.Context) error {
	var wait backoff.Series
	for {
		noted, err := rs.book.Noted(ctx, webhookSecretSubject, rs.name)
		if err == nil && noted.Value == "" {
			return nil
		}
		if err == nil {
			var done bool
			if err = rs.call(ctx, "deleteWebhook", nil, &done); err == nil {
				err = rs.book.SetNote(ctx, webhookSecretSubject, rs.name, "")
			}
			if err == nil {
				rs.log.LogAttrs(ctx, slog.LevelInfo, "the bot's webhook is removed; it is polled from now on")
				return nil
			}
		}
		refusal, ok := errors.AsType[*channels.SendError](err)
		if ok && refusal.Fault == channels.Stop {
			return err
		}
		if !wait.HasWaited() {
			rs.log.LogAttrs(ctx, slog.LevelWarn, "the bot's webhook cannot be removed yet; trying on", slog.Any("error", err))
		}
		pause := wait.Next(maxTelegramWait)
		if ok {
			pause = cmp.Or(max(pause, refusal.RetryAfter), pause)
		}
		if !backoff.Sleep(ctx, pause) {
			return nil
		}
	}
}
