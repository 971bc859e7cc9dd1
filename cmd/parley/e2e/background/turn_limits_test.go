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

// A workshop is a fleet of a gateway and two workers, each of which runs one turn at a
// time: so two turns that run are on two workers.
type workshop struct {
	*parleytest.World
	workers []*parleytest.Process
	release chan struct{} // closed to let the turns end whose message says "slowly"

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

// waitAsked waits until the model was asked that many times, and returns what.
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

// Two accounts that are linked have so many turns at once in all workers together, and the
// next begins once one has ended. Turns of a worker that was killed count no more.
func TestTurnsAtOnceOfAPersonHoldOverWorkers(t *testing.T) {
	t.Parallel()
	s := newWorkshop(t, "user_turns = 1\n")
	s.link(2, 3)
	s.Telegram.Say(2, 2, "first, slowly")
	s.waitAsked(1)
	s.Telegram.Say(3, 3, "second")
	s.Telegram.Say(4, 4, "another's")
	s.WaitSaid(4, 1) // the other worker has passed over what came before
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

// A person who has begun so many turns in an hour, in all workers and with all linked
// accounts together, is told once when the next may begin.
func TestTurnsInAnHourOfAPersonHoldOverWorkers(t *testing.T) {
	t.Parallel()
	s := newWorkshop(t, "user_turns_hour = 2\n")
	s.link(2, 3)
	s.Telegram.Say(2, 2, "first, slowly")
	s.waitAsked(1)
	s.Telegram.Say(3, 3, "second, slowly")
	s.waitAsked(2) // both workers have one
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

// link links the accounts of two people, each in their chat with the bot. After that the
// bot has said two things to the first and one to the second.
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

// What a sub-agent does is not a turn of the person for whom it works: the person is answered
// meanwhile, also after the sub-agent's turn was cut off and resumed.
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

// talkBesideSubAgent talks to the bot while a sub-agent works. restart replaces the processes
// that run turns.
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

// sayAndWait says something and waits for the answer.
func (s *workshop) sayAndWait(text string) {
	s.T.Helper()
	s.Telegram.Say(2, 2, text)
	s.waitTold("done: " + text)
}

// waitTold waits until the bot has said something.
func (s *workshop) waitTold(text string) {
	s.T.Helper()
	parleytest.WaitFor(s.T, text, func() bool {
		return strings.Contains(strings.Join(parleytest.Texts(s.Telegram.Sent(2)), "\n"), text)
	})
}
