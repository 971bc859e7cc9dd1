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

// onceToolName is the tool of effect once that the program has in tests. It requests the
// URL in PARLEY_BELL, which nobody can undo or ask about.
const onceToolName = "ring"

// A onceTool is the server at that URL. It counts the requests of each call.
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

// ServeHTTP counts the request first, and answers it a little later, so that callers are
// killed in between.
func (b *onceTool) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.made[r.URL.Query().Get("call")]++
	b.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-time.After(rand.N(300 * time.Millisecond)):
	}
}

// calls tells how often each call has made the request.
func (b *onceTool) calls() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.made)
}
