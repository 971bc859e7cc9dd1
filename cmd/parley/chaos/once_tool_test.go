package chaos

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// onceToolName is the tool of effect once that the program has in tests: it rings
// the bell at PARLEY_BELL, and nobody can take that back or ask about it.
const onceToolName = "ring"

// A onceTool counts who has rung it.
type onceTool struct {
	url string

	mu   sync.Mutex
	made map[string]int // by the call's key
}

func newOnceTool(t testing.TB) *onceTool {
	b := &onceTool{made: map[string]int{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// ServeHTTP rings, and takes its time to say so: callers die meanwhile.
func (b *onceTool) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.made[r.URL.Query().Get("call")]++
	b.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-time.After(rand.N(300 * time.Millisecond)):
	}
}

// calls tells how often each call has rung.
func (b *onceTool) calls() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.made)
}
