package redisbus

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"parley/bus"
	"parley/tools/plainjson"
)

// A forgetRequest asks all processes to forget the events of sessions.
type forgetRequest struct {
	ID       string   `json:"id"`
	By       string   `json:"by"` // the process that asks
	Sessions []string `json:"sessions"`
}

// forgetEvents makes every process forget the events of sessions, and waits until
// this process has received its own request. Redis delivers messages in order, so by
// then this process has received, and now forgets, all that was emitted before.
func (s *events) forgetEvents(ctx context.Context, sessions []string) error {
	o := forgetRequest{ID: rand.Text(), By: s.self, Sessions: sessions}
	text, err := plainjson.Marshal(o)
	if err != nil {
		return err
	}
	heard := s.expectForget(o.ID)
	defer s.dropExpectation(o.ID)
	if err := s.emitter.removeEvents(ctx, sessions); err != nil {
		return err
	}
	for {
		if err := s.client.Publish(ctx, s.keys.forgotten(), text).Err(); err != nil {
			return err
		}
		select {
		case <-heard:
			return nil
		case <-time.After(maxPollInterval): // the connection broke and lost the request, so send it again
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closed:
			return bus.ErrClosed
		}
	}
}

// handleForgetRequest forgets the events that a process of the fleet, perhaps this one, has
// asked all processes to forget.
func (s *events) handleForgetRequest(text string) {
	var o forgetRequest
	if json.Unmarshal([]byte(text), &o) != nil {
		return // no bus has sent this
	}
	s.forget(o, o.By == s.self)
	if o.By == s.self {
		return // this process has forgotten before it asked; what it has to send now is newer
	}
	s.spawn(func() {
		// This process may have added to the streams after the other one deleted them. If
		// this fails, the streams expire.
		_ = s.emitter.removeEvents(context.Background(), o.Sessions)
	})
}

// expectForget returns a channel that is closed when this process has received its own
// request with that id.
func (s *events) expectForget(id string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := make(chan struct{})
	s.forgetAcks[id] = heard
	return heard
}

// dropExpectation removes the channel that expectForget has made for an id.
func (s *events) dropExpectation(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.forgetAcks, id)
}

// forget removes the events of sessions from the queues of this process's watchers. If this process had
// to send its own request twice, it receives it twice; it ignores the second, because newer events may
// have come in between.
func (s *events) forget(o forgetRequest, own bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := s.forgetAcks[o.ID]
	if own && heard == nil {
		return
	}
	s.forgets.Add(1)
	server := s.keys.channel(bus.ServerFeed())
	for channel, f := range s.feeds {
		for w := range f.watchers {
			w.dropEvents(o.Sessions)
			if channel == server {
				s.lost.Add(w.push(bus.Event{}))
			}
		}
	}
	if heard != nil {
		close(heard)
		delete(s.forgetAcks, o.ID)
	}
}
