package bustest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"parley/bus"
)

// News collects the events of the server's feed from now on, until the test ends. The returned function returns the
// events so far: of each its type, session and turn, and the id, kind and state that it has.
func News(t testing.TB, events bus.Events) func() []string {
	t.Helper()
	news, err := events.Subscribe(t.Context(), bus.ServerFeed(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	go func() {
		for e, err := range news {
			line := fmt.Sprint(err)
			if err == nil {
				line = fmt.Sprintf("%s session=%s turn=%s id=%s kind=%s state=%s", e.Type, e.Session, e.Turn, e.News.ID, e.News.Kind, e.News.State)
			}
			mu.Lock()
			told = append(told, line)
			mu.Unlock()
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(told)
	}
}
