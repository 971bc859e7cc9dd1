package telegramtest

import (
	"context"
	"net/http"
	"time"
)

// getUpdates answers the method with that name: it drops the updates that the offset confirms, and waits for
// others.
func (s *Server) getUpdates(ctx context.Context, p params) ([]byte, error) {
	limit := int(p.intParam("limit"))
	if limit < 1 || limit > 100 {
		limit = 100
	}
	timeout := time.NewTimer(time.Duration(p.intParam("timeout")) * time.Second)
	defer timeout.Stop()

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook != nil {
		return nil, refusal{
			status: http.StatusConflict,
			text:   "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
		}
	}
	s.dropConfirmed(p.intParam("offset"))
	s.allowedUpdates = p["allowed_updates"]
	s.pollCount++
	me := s.pollCount
	s.wakePolls() // an older poll ends
	for {
		if s.pollCount != me {
			return nil, refusal{
				status: http.StatusConflict,
				text:   "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
			}
		}
		if len(s.unconfirmed) > 0 {
			return s.firstUpdates(limit), nil
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
		if over && s.pollCount == me {
			return s.firstUpdates(limit), nil
		}
	}
}

// dropConfirmed drops the updates that an offset confirms; a negative offset keeps as many of the newest ones as it
// says. The caller holds s.mu.
func (s *Server) dropConfirmed(offset int64) {
	n := 0
	if offset < 0 {
		n = max(0, len(s.unconfirmed)+int(offset))
	} else {
		for n < len(s.unconfirmed) && s.unconfirmed[n].id < offset {
			n++
		}
	}
	s.unconfirmed = s.unconfirmed[n:]
}

// firstUpdates returns an answer with the first unconfirmed updates. The caller holds s.mu.
func (s *Server) firstUpdates(limit int) []byte {
	out := []byte(`{"ok":true,"result":[`)
	for i, u := range s.unconfirmed[:min(limit, len(s.unconfirmed))] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, u.json...)
	}
	return append(out, "]}"...)
}
