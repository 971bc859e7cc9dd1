//go:build linux

package files

import (
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// A relay is a fleet of a gateway and two workers, one of which is always busy in another chat. So each turn of the
// tested chat runs on a different worker than the previous one.
type relay struct {
	*parleytest.World
	workers []*parleytest.Process

	mu    sync.Mutex
	busy  int                   // the number of the turn that keeps a worker busy
	over  map[int]chan struct{} // by number: closed to end the turn
	asked map[int]bool          // by number: whether the turn has begun
	said  int                   // how often the bot has answered in the tested chat
}

func newRelay(t *testing.T, root string) *relay {
	t.Helper()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	s := &relay{over: map[int]chan struct{}{}, asked: map[int]bool{}}
	s.World = parleytest.New(t, s.model, fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n[serve]\nmax_in_flight = 1\n%s",
		redis, "test-"+rand.Text(), sqldbtest.New(t), root, parleytest.WithShell))
	s.World.NeedsSandbox()
	s.ServeAs("gateway")
	for range 2 {
		s.workers = append(s.workers, s.ServeAs("worker"))
	}
	return s
}

func (s *relay) model(r agenttest.Request) agenttest.Response {
	var n int
	if _, err := fmt.Sscanf(r.Said(), "be busy %d", &n); err != nil {
		return undoModel(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[n] = true
	return agenttest.Reply("done").WaitFor(s.over[n])
}

// next makes the free worker busy and frees the other one.
func (s *relay) next() {
	s.T.Helper()
	s.mu.Lock()
	before := s.over[s.busy]
	s.busy++
	n := s.busy
	s.over[n] = make(chan struct{})
	s.mu.Unlock()
	s.Telegram.Say(int64(100+n), int64(100+n), fmt.Sprint("be busy ", n))
	parleytest.WaitFor(s.T, "a worker to be busy", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.asked[n]
	})
	if before != nil {
		close(before)
		s.WaitSaid(int64(100+n-1), 1)
	}
}

// say sends a text to the free worker, which is not the worker of the previous text, and returns the answer.
func (s *relay) say(text string) string {
	s.T.Helper()
	s.next()
	s.said++
	s.Telegram.Say(2, 2, text)
	return s.WaitSaid(2, s.said)[s.said-1]
}

// A worker can undo what another one has changed. What they record about a workspace is below their shared root, and
// what a worker remembers of it is never out of date.
func TestUndoByAnotherWorker(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := newRelay(t, root)
	dir := filepath.Join(root, "main", "telegram:2")
	s.say("run " + shellBefore)
	before := contents(t, dir)
	s.say("run " + shellChange)
	after := contents(t, dir)
	if maps.Equal(before, after) || len(before) < 10 {
		t.Fatalf("the shell has changed nothing: %v", after)
	}
	parleytest.Wants(t, s.say("/undo list"), "• 2, ", "• 1, ")
	s.next() // the worker that made the change is busy
	parleytest.Wants(t, s.say("/undo"), "I've undone what I changed (change 2", "Restored", "edited", "Removed", "made/", "/undo 3 reverses this")
	wantContents(t, "undone", contents(t, dir), before)
	parleytest.Wants(t, s.say("what happened?"), "read: ", "I've undone what I changed")
	s.next()
	parleytest.Wants(t, s.say("/undo 3"), "I've undone the undo (change 3")
	wantContents(t, "the undo undone", contents(t, dir), after)

	// Both workers have changed the same file, with the same size, one after the other.
	s.say("run printf 1 > turns")
	s.say("run printf 2 > turns")
	s.say("run printf 3 > turns")
	for _, want := range []string{"2", "1"} {
		parleytest.Wants(t, s.say("/undo"), "turns")
		if raw, err := os.ReadFile(filepath.Join(dir, "turns")); err != nil || string(raw) != want {
			t.Errorf("the file has %q, %v; want %q", raw, err, want)
		}
	}
	parleytest.Wants(t, s.say("/undo"), "Removed: turns")
	wantContents(t, "all undone", contents(t, dir), after)

	// If a worker dies during a turn, the other worker can undo the turn's changes.
	s.next()
	s.Telegram.Say(2, 2, "run echo late >> edited; touch begun; exec sleep 1000")
	parleytest.WaitFor(t, "the command to run", func() bool { _, err := os.Stat(filepath.Join(dir, "begun")); return err == nil })
	for _, p := range s.workers {
		p.Kill()
	}
	s.ServeAs("worker")
	s.ServeAs("worker")
	s.said++
	parleytest.Wants(t, s.WaitSaid(2, s.said)[s.said-1], "outcome")
	s.Telegram.Say(2, 2, "/undo")
	s.said++
	parleytest.Wants(t, s.WaitSaid(2, s.said)[s.said-1], "edited", "begun")
	wantContents(t, "what was cut off is undone", contents(t, dir), after)
	for i, p := range s.workers {
		if !strings.Contains(p.Stderr.String(), `"tool call"`) {
			t.Errorf("worker %d has changed nothing", i+1)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.over[s.busy])
}
