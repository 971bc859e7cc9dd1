package main

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// bellTool is the tool of effect once that the program has in tests: it rings
// the bell at PARLEY_BELL, and nobody can take that back or ask about it.
const bellTool = "ring"

// A bell counts who has rung it.
type bell struct {
	url string

	mu    sync.Mutex
	rings map[string]int // by the call's key
}

func newBell(t testing.TB) *bell {
	b := &bell{rings: map[string]int{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// ServeHTTP rings, and takes its time to say so: callers die meanwhile.
func (b *bell) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.rings[r.URL.Query().Get("call")]++
	b.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-time.After(rand.N(300 * time.Millisecond)):
	}
}

// rung tells how often each call has rung.
func (b *bell) rung() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.rings)
}
