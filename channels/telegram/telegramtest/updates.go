package telegramtest

import (
	"context"
	"net/http"
	"time"
)

// getUpdates forgets what the offset confirms, and waits for what it asks for.
func (s *Server) getUpdates(ctx context.Context, p params) ([]byte, error) {
	limit := int(p.number("limit"))
	if limit < 1 || limit > 100 {
		limit = 100
	}
	timeout := time.NewTimer(time.Duration(p.number("timeout")) * time.Second)
	defer timeout.Stop()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook != nil {
		return nil, refusal{
			status: http.StatusConflict,
			text:   "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
		}
	}
	s.forget(p.number("offset"))
	s.allowed = p["allowed_updates"]
	s.polls++
	me := s.polls
	s.wake() // an older poll ends
	for {
		if s.polls != me {
			return nil, refusal{
				status: http.StatusConflict,
				text:   "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
			}
		}
		if len(s.queue) > 0 {
			return s.batch(limit), nil
		}
		wake := s.wakePoll
		s.mu.Unlock()
		over := false
		select {
		case <-wake:
		case <-timeout.C:
			over = true
		case <-ctx.Done():
			s.mu.Lock()
			return nil, ctx.Err()
		}
		s.mu.Lock()
		if over && s.polls == me {
			return s.batch(limit), nil
		}
	}
}

// forget drops what an offset confirms; one below zero keeps that many. s.mu is held.
func (s *Server) forget(offset int64) {
	n := 0
	if offset < 0 {
		n = max(0, len(s.queue)+int(offset))
	} else {
		for n < len(s.queue) && s.queue[n].id < offset {
			n++
		}
	}
	s.queue = s.queue[n:]
}

// batch is an answer with the first updates of the queue. s.mu is held.
func (s *Server) batch(limit int) []byte {
	out := []byte(`{"ok":true,"result":[`)
	for i, u := range s.queue[:min(limit, len(s.queue))] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, u.json...)
	}
	return append(out, "]}"...)
}
