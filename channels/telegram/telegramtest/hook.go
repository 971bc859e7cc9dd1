package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"
)

// hookPause is the time between two attempts to deliver an update. Telegram's is longer.
const hookPause = 20 * time.Millisecond

// A hook delivers updates to the bot by HTTP requests. The updates of one chat go one after another, each until it
// is answered with 2xx; different chats do not wait for each other.
type hook struct {
	url, secret string
	client      *http.Client
	ctx         context.Context // done when the hook ends
	end         context.CancelFunc
	running     sync.WaitGroup
	busy        map[string]bool // lines of updates with a request in progress, by lineKey
	failed      string          // why the last failed request failed
	failedAt    time.Time
}

// isValidSecret reports whether Telegram accepts a text as a webhook's secret.
func isValidSecret(s string) bool {
	ok, _ := regexp.MatchString("^[A-Za-z0-9_-]{1,256}$", s) // the expression is valid
	return ok
}

// setWebhook answers the method with that name: from now on, updates are delivered by HTTP requests.
func (s *Server) setWebhook(p params) ([]byte, error) {
	u, err := url.Parse(p["url"])
	if err != nil || u.Scheme != "https" && u.Hostname() != "127.0.0.1" { // a local server accepts http
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	if secret := p["secret_token"]; secret != "" && !isValidSecret(secret) {
		return nil, badRequest("secret token contains unallowed characters")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowedUpdates = p["allowed_updates"]
	if s.hook != nil && s.hook.url == p["url"] && s.hook.secret == p["secret_token"] {
		return []byte(`{"ok":true,"result":true,"description":"Webhook is already set"}`), nil
	}
	s.stopHook()
	ctx, end := context.WithCancel(context.Background())
	h := &hook{url: p["url"], secret: p["secret_token"], client: &http.Client{Timeout: time.Minute}, ctx: ctx, end: end, busy: map[string]bool{}}
	s.hook = h
	h.running.Go(func() { s.deliverToHook(h) })
	return []byte(`{"ok":true,"result":true,"description":"Webhook was set"}`), nil
}

// deleteWebhook answers the method with that name: from now on, updates are polled.
func (s *Server) deleteWebhook() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopHook()
	return []byte(`{"ok":true,"result":true,"description":"Webhook was deleted"}`), nil
}

// webhookInfo answers getWebhookInfo.
func (s *Server) webhookInfo() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := map[string]any{"url": "", "has_custom_certificate": false, "pending_update_count": len(s.unconfirmed)}
	if s.hook != nil {
		info["url"] = s.hook.url
		if s.hook.failed != "" {
			info["last_error_message"], info["last_error_date"] = s.hook.failed, s.hook.failedAt.Unix()
		}
	}
	return json.Marshal(map[string]any{"ok": true, "result": info})
}

// Webhook returns the address to which updates are delivered, and the secret; "" while updates are polled.
func (s *Server) Webhook() (address, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook == nil {
		return "", ""
	}
	return s.hook.url, s.hook.secret
}

// EndWebhook ends delivery by requests, which a test must do at its end, and waits for requests in progress.
func (s *Server) EndWebhook() {
	s.mu.Lock()
	h := s.hook
	s.stopHook()
	s.mu.Unlock()
	if h != nil {
		h.running.Wait()
	}
}

// stopHook ends delivery by requests. The caller holds s.mu.
func (s *Server) stopHook() {
	if s.hook != nil {
		s.hook.end()
		s.hook = nil
	}
}

// lineKey returns the key of an update's line: the updates in one line are delivered one after another.
func lineKey(data []byte) string {
	var u struct {
		Message struct {
			Chat struct{ ID int64 }
		}
		Press struct {
			From struct{ ID int64 }
		} `json:"callback_query"`
	}
	_ = json.Unmarshal(data, &u) // another kind: all of those are in one line
	return fmt.Sprint(u.Message.Chat.ID, " ", u.Press.From.ID)
}

// deliverToHook makes requests until the hook ends.
func (s *Server) deliverToHook(h *hook) {
	for {
		s.mu.Lock()
		wake := s.wakePoll
		if !s.closed {
			for _, u := range s.unconfirmed {
				if !h.busy[u.lineKey] {
					h.busy[u.lineKey] = true
					h.running.Go(func() { s.postAndAdvance(h, u) })
				}
			}
		}
		s.mu.Unlock()
		select {
		case <-wake:
		case <-h.ctx.Done():
			return
		}
	}
}

// postAndAdvance makes one request, then lets the next request in its line be made.
func (s *Server) postAndAdvance(h *hook, u update) {
	why := h.post(u)
	if why != "" {
		select {
		case <-time.After(hookPause):
		case <-h.ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.busy[u.lineKey] = false
	if why != "" {
		h.failed, h.failedAt = why, time.Now()
	} else if s.hook == h {
		for i, waiting := range s.unconfirmed {
			if waiting.id == u.id {
				s.unconfirmed = append(s.unconfirmed[:i:i], s.unconfirmed[i+1:]...)
				break
			}
		}
	}
	s.wakePolls()
}

// post makes one request and returns what went wrong; "" if nothing did.
func (h *hook) post(u update) string {
	req, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url, bytes.NewReader(u.json))
	if err != nil {
		return "bad address"
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Telegram-Bot-Api-Secret-Token", h.secret)
	resp, err := h.client.Do(req)
	if err != nil {
		return "Connection refused"
	}
	_ = resp.Body.Close() // Telegram would read a call from it, but nobody makes one
	if resp.StatusCode/100 != 2 {
		return "Wrong response from the webhook: " + resp.Status
	}
	return ""
}

// Migrate turns a group into a supergroup: both chats receive a message about it, and every call for the old id is
// refused.
func (s *Server) Migrate(from, to int64) {
	s.Post(from, 0, map[string]any{"migrate_to_chat_id": to, "chat": map[string]any{"id": from, "type": "group"}})
	s.mu.Lock()
	s.movedGroups[from] = to
	s.mu.Unlock()
	s.Post(to, 0, map[string]any{"migrate_from_chat_id": from})
}

// movedTo returns the new id of a group that has become a supergroup; 0 if it has not.
func (s *Server) movedTo(chat int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.movedGroups[chat]
}
