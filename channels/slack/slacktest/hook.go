package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// A hook delivers events to the app by HTTP requests to one address. It makes the requests for one channel one
// after another, each until it is answered with 200, without the pauses of minutes that Slack makes. Slack promises
// no order; here it is the order in which things happened.
type hook struct {
	url, secret string
	client      *http.Client
	ctx         context.Context // done when the hook ends
	running     sync.WaitGroup
	recordAck   func(id string, shown json.RawMessage) // records an acknowledgement
	isForgotten func(id string) bool

	mu     sync.Mutex
	resume chan struct{}          // closed when requests continue; nil unless they are paused
	queues map[string][]*envelope // by channel: the envelopes that must be delivered
}

// hookPause is the time between two attempts.
const hookPause = 20 * time.Millisecond

// SendRequestsTo delivers events to the app by HTTP requests to that address, signed with the secret, instead of
// over sockets, until stop is called.
func (s *Server) SendRequestsTo(address, secret string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hook{
		url: address, secret: secret, ctx: ctx, queues: map[string][]*envelope{}, recordAck: s.sockets.ack, isForgotten: s.sockets.isForgotten,
		client: &http.Client{Timeout: 10 * time.Second},
	}
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	s.sockets.hook = h
	for _, e := range s.sockets.waiting {
		h.add(e)
	}
	s.sockets.waiting = nil
	return func() {
		h.mu.Lock()
		cancel() // from now on, add starts nothing
		h.mu.Unlock()
		h.running.Wait()
	}
}

// isForgotten reports whether an envelope no longer waits for an acknowledgement.
func (s *sockets) isForgotten(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending[id] == nil
}

// PauseRequests holds requests back if on is true, and otherwise lets them continue.
func (s *Server) PauseRequests(on bool) { s.sockets.pause(on) }

// pause holds the hook's requests back, or lets them continue.
func (s *sockets) pause(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook == nil {
		return
	}
	s.hook.mu.Lock()
	defer s.hook.mu.Unlock()
	switch {
	case on && s.hook.resume == nil:
		s.hook.resume = make(chan struct{})
		s.hook.client.CloseIdleConnections()
	case !on && s.hook.resume != nil:
		close(s.hook.resume)
		s.hook.resume = nil
	}
}

// add queues an envelope behind the others from its channel.
func (h *hook) add(e *envelope) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queues[e.chat] = append(h.queues[e.chat], e)
	if len(h.queues[e.chat]) == 1 && h.ctx.Err() == nil {
		h.running.Go(func() { h.sendLine(e.chat) })
	}
}

// sendLine sends the queued requests for one chat, one after another, until none is left.
func (h *hook) sendLine(chat string) {
	for {
		h.mu.Lock()
		line := h.queues[chat]
		if len(line) == 0 || h.ctx.Err() != nil {
			h.mu.Unlock()
			return
		}
		e, paused := line[0], h.resume
		h.mu.Unlock()
		if paused != nil {
			select {
			case <-paused:
			case <-h.ctx.Done():
			}
			continue
		}
		if shown, ok := h.post(e); ok {
			h.recordAck(e.id, shown)
		} else if e.kind == eventsAPI && !h.isForgotten(e.id) {
			select {
			case <-time.After(hookPause):
			case <-h.ctx.Done():
			}
			continue
		}
		h.mu.Lock()
		h.queues[chat] = h.queues[chat][1:]
		h.mu.Unlock()
	}
}

// post makes one request, and reports whether it was answered with 200, and what should be shown.
func (h *hook) post(e *envelope) (shown json.RawMessage, ok bool) {
	body, kind := []byte(e.payload), "application/json"
	switch e.kind {
	case interactive:
		body, kind = []byte(url.Values{"payload": {string(e.payload)}}.Encode()), "application/x-www-form-urlencoded"
	case slashCommands:
		var fields map[string]string
		if err := json.Unmarshal(e.payload, &fields); err != nil {
			panic("slacktest: a command that is no form: " + err.Error()) // the test's mistake
		}
		form := url.Values{}
		for name, value := range fields {
			form.Set(name, value)
		}
		body, kind = []byte(form.Encode()), "application/x-www-form-urlencoded"
	}
	req, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		panic("slacktest: no address: " + err.Error()) // the test's mistake
	}
	Sign(req.Header, h.secret, time.Now(), body)
	req.Header.Set("Content-Type", kind)
	if e.attempts > 0 {
		req.Header.Set("X-Slack-Retry-Num", strconv.Itoa(min(e.attempts, 2)))
		req.Header.Set("X-Slack-Retry-Reason", "http_error")
	}
	e.attempts++
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, false
	}
	defer func() { _ = resp.Body.Close() }()              // it is read
	if json.NewDecoder(resp.Body).Decode(&shown) != nil { // what is not JSON is not shown
		shown = nil
	}
	return shown, resp.StatusCode == http.StatusOK
}

// Sign signs a request in the way that Slack does, as of the given time.
func Sign(header http.Header, secret string, at time.Time, body []byte) {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%d:%s", at.Unix(), body)
	header.Set("X-Slack-Request-Timestamp", strconv.FormatInt(at.Unix(), 10))
	header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}
