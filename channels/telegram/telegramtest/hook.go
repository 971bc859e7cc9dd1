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

// hookPause is between two attempts to deliver an update. Telegram's are longer.
const hookPause = 20 * time.Millisecond

// A hook delivers updates by requests: those of a chat one after the other, each until it
// is answered with 2xx, those of different chats side by side.
type hook struct {
	url, secret string
	client      *http.Client
	ctx         context.Context // ends with the hook
	end         context.CancelFunc
	running     sync.WaitGroup
	busy        map[string]bool // lines with a request under way
	failed      string          // what went wrong last
	failedAt    time.Time
}

// isSecret tells what Telegram takes as a webhook's secret.
func isSecret(s string) bool {
	ok, _ := regexp.MatchString("^[A-Za-z0-9_-]{1,256}$", s) // the expression is good
	return ok
}

// setWebhook delivers updates by requests from now on.
func (s *Server) setWebhook(p params) ([]byte, error) {
	u, err := url.Parse(p["url"])
	if err != nil || u.Scheme != "https" && u.Hostname() != "127.0.0.1" { // a local server takes http
		return nil, bad("bad webhook: An HTTPS URL must be provided for webhook")
	}
	if secret := p["secret_token"]; secret != "" && !isSecret(secret) {
		return nil, bad("secret token contains unallowed characters")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = p["allowed_updates"]
	if s.hook != nil && s.hook.url == p["url"] && s.hook.secret == p["secret_token"] {
		return []byte(`{"ok":true,"result":true,"description":"Webhook is already set"}`), nil
	}
	s.endHook()
	ctx, end := context.WithCancel(context.Background())
	h := &hook{url: p["url"], secret: p["secret_token"], client: &http.Client{Timeout: time.Minute}, ctx: ctx, end: end, busy: map[string]bool{}}
	s.hook = h
	h.running.Go(func() { s.deliver(h) })
	return []byte(`{"ok":true,"result":true,"description":"Webhook was set"}`), nil
}

func (s *Server) deleteWebhook() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endHook()
	return []byte(`{"ok":true,"result":true,"description":"Webhook was deleted"}`), nil
}

func (s *Server) webhookInfo() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := map[string]any{"url": "", "has_custom_certificate": false, "pending_update_count": len(s.queue)}
	if s.hook != nil {
		info["url"] = s.hook.url
		if s.hook.failed != "" {
			info["last_error_message"], info["last_error_date"] = s.hook.failed, s.hook.failedAt.Unix()
		}
	}
	return json.Marshal(map[string]any{"ok": true, "result": info})
}

// Webhook is where updates are delivered by requests; "" while they are polled.
func (s *Server) Webhook() (address, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook == nil {
		return "", ""
	}
	return s.hook.url, s.hook.secret
}

// EndWebhook ends the requests, as the end of a test has to, and waits for those that are
// under way.
func (s *Server) EndWebhook() {
	s.mu.Lock()
	h := s.hook
	s.endHook()
	s.mu.Unlock()
	if h != nil {
		h.running.Wait()
	}
}

// endHook ends the requests. s.mu is held.
func (s *Server) endHook() {
	if s.hook != nil {
		s.hook.end()
		s.hook = nil
	}
}

// lineOf is whose updates an update comes behind.
func lineOf(data []byte) string {
	var u struct {
		Message struct {
			Chat struct{ ID int64 }
		}
		Press struct {
			From struct{ ID int64 }
		} `json:"callback_query"`
	}
	_ = json.Unmarshal(data, &u) // of another kind: all of those are one line
	return fmt.Sprint(u.Message.Chat.ID, " ", u.Press.From.ID)
}

// deliver makes requests until the hook ends.
func (s *Server) deliver(h *hook) {
	for {
		s.mu.Lock()
		wake := s.wakePoll
		if !s.closed {
			for _, u := range s.queue {
				if !h.busy[u.line] {
					h.busy[u.line] = true
					h.running.Go(func() { s.post(h, u) })
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

// post makes one request, and then lets the next of its line be made.
func (s *Server) post(h *hook, u update) {
	why := h.post(u)
	if why != "" {
		select {
		case <-time.After(hookPause):
		case <-h.ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.busy[u.line] = false
	if why != "" {
		h.failed, h.failedAt = why, time.Now()
	} else if s.hook == h {
		for i, waiting := range s.queue {
			if waiting.id == u.id {
				s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
				break
			}
		}
	}
	s.wake()
}

// post tells what went wrong; "" is nothing.
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
	_ = resp.Body.Close() // Telegram would take a call from it, which nobody makes
	if resp.StatusCode/100 != 2 {
		return "Wrong response from the webhook: " + resp.Status
	}
	return ""
}

// Migrate makes a supergroup of a group: both are told, and whatever is sent to the old
// id is refused.
func (s *Server) Migrate(from, to int64) {
	s.Post(from, 0, map[string]any{"migrate_to_chat_id": to, "chat": map[string]any{"id": from, "type": "group"}})
	s.mu.Lock()
	s.moved[from] = to
	s.mu.Unlock()
	s.Post(to, 0, map[string]any{"migrate_from_chat_id": from})
}

func (s *Server) movedTo(chat int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved[chat]
}
