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

// onceToolName is the name of a tool whose calls must run at most once. The program has it only in tests. The tool
// requests the URL in PARLEY_ONCE_URL. Nobody can undo the request or find out whether it happened.
const onceToolName = "ring"

// A onceTool is the server at that URL. It counts the requests of each call.
type onceTool struct {
	url string

	mu   sync.Mutex
	made map[string]int // the number of requests, by the call's key
}

func newOnceTool(t testing.TB) *onceTool {
	o := &onceTool{made: map[string]int{}}
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	o.url = server.URL
	return o
}

// ServeHTTP first counts the request and answers a little later, so that callers may be killed in between.
func (o *onceTool) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.made[r.URL.Query().Get("call")]++
	o.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-time.After(rand.N(300 * time.Millisecond)):
	}
}

// calls returns how often each call has made the request.
func (o *onceTool) calls() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.made)
}
