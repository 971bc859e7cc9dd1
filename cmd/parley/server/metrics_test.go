package server

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/parleytest"
)

// One process reports the metrics that the whole fleet shares, and another one after that process is gone, so sums
// over all processes are right.
func TestOneProcessTellsWhatTheFleetShares(t *testing.T) {
	dir := t.TempDir()
	cfg, err := config.Load(config.Options{Home: dir, Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	h, err := home.Open(t.Context(), cfg, home.WorkspaceOverride{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	fleet := make([]*Server, 2)
	stop := make([]context.CancelFunc, 2)
	var telling sync.WaitGroup
	defer telling.Wait()
	for i := range fleet {
		fleet[i] = assemble(t, h, Config{Settings: cfg})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stop[i] = cancel
		telling.Go(func() { fleet[i].front.fleet.Run(ctx) })
	}
	told := func(s *Server) int {
		page := httptest.NewRecorder()
		s.metrics.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
		return strings.Count(page.Body.String(), `parley_bus_waiting{topic="inbound"}`)
	}
	parleytest.WaitFor(t, "one to tell", func() bool { return told(fleet[0])+told(fleet[1]) == 1 })
	holder := 0
	if told(fleet[1]) == 1 {
		holder = 1
	}
	stop[holder]()
	parleytest.WaitFor(t, "the other to tell", func() bool { return told(fleet[holder]) == 0 && told(fleet[1-holder]) == 1 })
}
