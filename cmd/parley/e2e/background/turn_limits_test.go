package background

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// A workshop is a fleet of a gateway and two workers that run one turn each at a time. So two turns that run at once
// are on two workers.
type workshop struct {
	*parleytest.World
	workers []*parleytest.Process
	release chan struct{} // closed to end the turns whose message says "slowly"

	mu    sync.Mutex
	asked []string // what the model was asked, in order
}

func newWorkshop(t *testing.T, limits string) *workshop {
	t.Helper()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	s := &workshop{release: make(chan struct{})}
	s.World = parleytest.New(t, s.model, fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n[serve]\nmax_in_flight = 1\n[limits]\n%s",
		redis, "test-"+rand.Text(), sqldbtest.New(t), t.TempDir(), limits))
	s.ServeAs("gateway")
	for range 2 {
		s.workers = append(s.workers, s.ServeAs("worker"))
	}
	return s
}

func (s *workshop) model(r agenttest.Request) agenttest.Response {
	if !read(r).child && strings.HasPrefix(r.Said(), "spawn ") {
		return delegating(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Said())
	answer := agenttest.Reply("done: " + r.Said())
	if strings.Contains(r.Said(), "slowly") {
		return answer.WaitFor(s.release)
	}
	return answer
}

// waitAsked waits until the model was asked n times, and returns all that it was asked.
func (s *workshop) waitAsked(n int) string {
	s.T.Helper()
	var all string
	parleytest.WaitFor(s.T, fmt.Sprintf("the model to be asked %d times", n), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		all = strings.Join(s.asked, "\n")
		return len(s.asked) >= n
	})
	return all
}

// The limit of turns at once holds for a person with two linked accounts, over all workers together. The next turn
// begins when one ends, and turns of a killed worker no longer count.
func TestTurnsAtOnceOfAPersonHoldOverWorkers(t *testing.T) {
	t.Parallel()
	s := newWorkshop(t, "user_turns = 1\n")
	s.link(2, 3)
	s.Telegram.Say(2, 2, "first, slowly")
	s.waitAsked(1)
	s.Telegram.Say(3, 3, "second")
	s.Telegram.Say(4, 4, "another's")
	s.WaitSaid(4, 1) // the other worker has skipped the earlier messages
	if asked := s.waitAsked(2); strings.Contains(asked, "second") {
		t.Errorf("beside the one turn that a person may have, another began: %s", asked)
	}
	for _, p := range s.workers {
		p.Kill()
	}
	s.ServeAs("worker")
	close(s.release)
	if got := s.WaitSaid(2, 3)[2]; got != "done: first, slowly" {
		t.Errorf("the first is answered %q", got)
	}
	if got := s.WaitSaid(3, 2)[1]; got != "done: second" {
		t.Errorf("the second is answered %q", got)
	}
}

// The limit of turns in an hour holds for a person over all workers and linked accounts. The bot tells the person once
// when the next turn may begin.
func TestTurnsInAnHourOfAPersonHoldOverWorkers(t *testing.T) {
	t.Parallel()
	s := newWorkshop(t, "user_turns_hour = 2\n")
	s.link(2, 3)
	s.Telegram.Say(2, 2, "first, slowly")
	s.waitAsked(1)
	s.Telegram.Say(3, 3, "second, slowly")
	s.waitAsked(2) // each worker has a turn
	close(s.release)
	s.WaitSaid(2, 3)
	s.WaitSaid(3, 2)
	for n, chat := range []int64{2, 3} {
		s.Telegram.Say(chat, chat, "third")
		got := s.WaitSaid(chat, 4-n)
		if last := got[len(got)-1]; !strings.Contains(last, "2 times in the past hour") || !strings.Contains(last, "Ask again after") {
			t.Errorf("one turn more is answered %q", last)
		}
	}
	s.Telegram.Say(4, 4, "another's")
	s.WaitSaid(4, 1)
	if asked := s.waitAsked(3); strings.Contains(asked, "third") {
		t.Errorf("the model was asked %s", asked)
	}
	if a, b := len(s.Telegram.Sent(2)), len(s.Telegram.Sent(3)); a != 4 || b != 3 {
		t.Errorf("the two were told %d and %d things, want 4 and 3", a, b)
	}
}

// link links the accounts of two people, each in their chat with the bot. Afterwards the bot has sent two messages to
// the first person and one to the second.
func (s *workshop) link(first, second int64) {
	s.T.Helper()
	s.Telegram.Say(first, first, "/link")
	code := regexp.MustCompile("link ([a-z2-7]{10})").FindStringSubmatch(s.WaitSaid(first, 1)[0])
	if code == nil {
		s.T.Fatal("there is no code")
	}
	s.Telegram.Say(second, second, "/link "+code[1])
	s.WaitSaid(second, 1)
	s.WaitSaid(first, 2)
}

// A sub-agent's turn does not count as a turn of its person. The person gets answers while the sub-agent works, even
// after the sub-agent's turn was interrupted and resumed.
func TestSubAgentsDoNotHoldBackTheirPerson(t *testing.T) {
	t.Parallel()
	const limits = "user_turns = 1\n" + withSession
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s := &workshop{release: make(chan struct{})}
		s.World = parleytest.New(t, s.model, "[limits]\n"+limits)
		p := s.Serve()
		s.talkBesideSubAgent(func() {
			p.Kill()
			s.Serve()
		})
	})
	t.Run("fleet", func(t *testing.T) {
		t.Parallel()
		s := newWorkshop(t, limits)
		s.talkBesideSubAgent(func() {
			for _, p := range s.workers {
				p.Kill()
				s.ServeAs("worker")
			}
		})
	})
}

// talkBesideSubAgent checks that a person gets answers while a sub-agent works. restart replaces the processes that run
// turns.
func (s *workshop) talkBesideSubAgent(restart func()) {
	s.T.Helper()
	s.Telegram.Say(2, 2, "spawn something slowly")
	s.waitAsked(1)
	s.sayAndWait("next")
	restart()
	parleytest.WaitFor(s.T, "the sub-agent to be resumed", func() bool { return strings.Count(s.waitAsked(1), "slowly") == 2 })
	s.sayAndWait("after that")
	close(s.release)
	s.waitTold("report:\n\ndone: something slowly")
}

// sayAndWait says a text to the bot and waits for the answer.
func (s *workshop) sayAndWait(text string) {
	s.T.Helper()
	s.Telegram.Say(2, 2, text)
	s.waitTold("done: " + text)
}

// waitTold waits until the bot has sent this text.
func (s *workshop) waitTold(text string) {
	s.T.Helper()
	parleytest.WaitFor(s.T, text, func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(s.Telegram.Sent(2)), "\n"), text)
	})
}
