//go:build linux

package mcp_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
)

// A memory keeps pins for one test.
type memory struct {
	mu    sync.Mutex
	notes map[[2]string]string
}

func (m *memory) SetNote(_ context.Context, subject, about, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes[[2]string{subject, about}] = value; value == "" {
		delete(m.notes, [2]string{subject, about})
	}
	return nil
}

func (m *memory) SetNoteOnce(_ context.Context, subject, about, value string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := [2]string{subject, about}
	if _, ok := m.notes[k]; !ok {
		m.notes[k] = value
	}
	return m.notes[k], nil
}

func (m *memory) Noted(_ context.Context, subject string) (map[string]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	for k, v := range m.notes {
		if k[0] == subject {
			all[k[1]] = v
		}
	}
	return all, nil
}

// httpHandler serves with the handler that now holds.
func httpHandler(now *atomic.Value) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().(http.Handler).ServeHTTP(w, r) })
}
