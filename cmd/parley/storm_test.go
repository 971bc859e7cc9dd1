package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/sessions/workspace"
)

// wall is a chat that every session may write to.
const wall = 990

// said is one message of a chat's and what it makes the agent do.
type said struct {
	chat int64
	n    int // within its chat, from 0
	what string
	id   int // the platform's
	at   time.Time
}

// text is what the person says, and all that the model is told.
func (s said) text() string { return fmt.Sprintf("%d %d %s", s.chat, s.n, s.what) }

// mark names the message in all that comes of it.
func (s said) mark() string { return fmt.Sprintf("%d.%d", s.chat, s.n) }

func (s said) answer() string { return "re " + s.mark() }

// What a message may ask for.
const (
	askSay      = "say"      // no tool
	askBegin    = "begin"    // make the file that is counted in
	askRewrite  = "rewrite"  // idempotent
	askRemember = "remember" // reconcilable: a paragraph is added
	askCount    = "count"    // reconcilable: a number is replaced by the next
	askNote     = "note"     // a message of its own, to the same chat
	askShout    = "shout"    // a message to the wall
	askAll      = "labour"   // all of these
)

// stormModel does what each message asks for.
func stormModel(r agenttest.Request) agenttest.Response {
	var s said
	if _, err := fmt.Sscan(r.Said(), &s.chat, &s.n, &s.what); err != nil {
		return agenttest.Reply("not understood: " + r.Said())
	}
	pause := rand.N(400 * time.Millisecond)
	for _, result := range r.Results() {
		if strings.Contains(result, `"error"`) && !tooLate(result) {
			return agenttest.Reply(s.answer() + " failed: " + result)
		}
	}
	if calls := s.next(r.Results()); len(calls) > 0 {
		return agenttest.Calls(calls...).After(pause)
	}
	return agenttest.Reply(s.answer()).After(pause)
}

// tooLate says of a result that the call was not made, since the process stood
// still meanwhile: it is to be made again.
func tooLate(result string) bool { return strings.Contains(result, workspace.ErrLate.Error()) }

// next are the calls that are to be made after those with these results.
func (s said) next(results []string) []agenttest.ToolCall {
	for round := 0; ; round++ {
		calls := s.calls(round)
		for len(calls) > 0 {
			if len(results) < len(calls) {
				return calls
			}
			var again []agenttest.ToolCall
			for i, call := range calls {
				if tooLate(results[i]) {
					again = append(again, call)
				}
			}
			calls, results = again, results[len(calls):]
		}
		if len(s.calls(round)) == 0 {
			return nil
		}
	}
}

// calls are what the model asks for in one round; none is the end.
func (s said) calls(round int) []agenttest.ToolCall {
	tool := func(name, format string, args ...any) agenttest.ToolCall {
		return agenttest.ToolCall{Name: name, Args: fmt.Sprintf(format, args...)}
	}
	each := map[string]agenttest.ToolCall{
		askBegin:    tool("write_file", `{"path":"count.txt","content":"<0>"}`),
		askRewrite:  tool("write_file", `{"path":"latest.txt","content":%q}`, s.mark()),
		askRemember: tool("memory_write", `{"content":%q}`, s.mark()),
		askCount:    tool("edit_file", `{"path":"count.txt","old_text":"<","new_text":"%d;["}`, s.n),
		askNote:     tool("message", `{"channel":"telegram","chat_id":"%d","content":"note %s"}`, s.chat, s.mark()),
		askShout:    tool("message", `{"channel":"telegram","chat_id":"%d","content":"shout %s"}`, wall, s.mark()),
	}
	settle := tool("edit_file", `{"path":"count.txt","old_text":"[","new_text":"<"}`)
	switch {
	case s.what == askAll && round == 0:
		return []agenttest.ToolCall{each[askRewrite], each[askRemember]}
	case s.what == askAll && round == 1:
		return []agenttest.ToolCall{each[askCount], each[askNote], each[askShout]}
	case s.what == askAll && round == 2, s.what == askCount && round == 1:
		return []agenttest.ToolCall{settle}
	case s.what != askAll && s.what != askSay && round == 0:
		return []agenttest.ToolCall{each[s.what]}
	}
	return nil
}

// A storm is a load on a fleet, and what is done to the fleet meanwhile.
type storm struct {
	*fleet
	seed  uint64
	chats int
	each  int           // messages of a chat
	lull  time.Duration // the longest pause between two messages of a chat

	mu    sync.Mutex
	said  [][]said // by chat
	deeds map[string]int
	took  time.Duration
}

const firstChat = 2

// run lets people talk while the fleet is broken at random, and returns when
// everything was answered that can be.
func (s *storm) run(patience time.Duration, hands ...func(*storm, *rand.Rand, <-chan struct{})) {
	s.t.Helper()
	began := time.Now()
	s.said, s.deeds = make([][]said, s.chats), map[string]int{}
	var people, broken sync.WaitGroup
	over := make(chan struct{})
	for i, hand := range hands {
		broken.Go(func() { hand(s, rand.New(rand.NewPCG(s.seed, uint64(i))), over) })
	}
	for c := range s.chats {
		people.Go(func() { s.talk(c, rand.New(rand.NewPCG(s.seed, uint64(1000+c)))) })
	}
	people.Wait()
	close(over)
	broken.Wait()
	s.await(patience)
	s.took = time.Since(began)
}

// talk is one person: what they say next may come before the last is answered.
func (s *storm) talk(c int, random *rand.Rand) {
	kinds := []string{askSay, askRewrite, askRemember, askCount, askNote, askShout, askAll, askAll}
	for n := range s.each {
		m := said{chat: int64(firstChat + c), n: n, what: kinds[random.IntN(len(kinds))]}
		if n == 0 {
			m.what = askBegin
		}
		<-time.After(time.Duration(random.Int64N(int64(s.lull))))
		for deadline := time.Now().Add(2 * time.Minute); n-s.answered(c) > 5 && time.Now().Before(deadline); {
			<-time.After(50 * time.Millisecond) // more would not be taken
		}
		m.at = time.Now()
		m.id = s.tg.Say(m.chat, m.chat, m.text())
		s.mu.Lock()
		s.said[c] = append(s.said[c], m)
		s.mu.Unlock()
	}
}

// answered counts the different answers that a chat has.
func (s *storm) answered(c int) int {
	seen := map[string]bool{}
	for _, m := range s.tg.Sent(int64(firstChat + c)) {
		if strings.HasPrefix(m.Text, "re ") {
			seen[m.Text] = true
		}
	}
	return len(seen)
}

// await waits until every message is answered and the bus has nothing to do.
func (s *storm) await(patience time.Duration) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for c := 0; c < s.chats; {
		if s.answered(c) >= s.each {
			c++
			continue
		}
		if time.Now().After(deadline) {
			s.t.Errorf("chat %d has %d answers to %d messages", firstChat+c, s.answered(c), s.each)
			c++
			continue
		}
		<-time.After(20 * time.Millisecond)
	}
	client := s.client()
	for time.Now().Before(deadline) && len(leftovers(s.keys(client))) > 0 {
		<-time.After(50 * time.Millisecond)
	}
}

// did notes something that was done to the fleet.
func (s *storm) did(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deeds[what]++
}

// pause waits up to a while, and reports false when the storm is over.
func pause(random *rand.Rand, least, more time.Duration, over <-chan struct{}) bool {
	select {
	case <-over:
		return false
	case <-time.After(least + time.Duration(random.Int64N(int64(more)))):
		return true
	}
}

// longStop is longer than a lease.
func longStop(random *rand.Rand) time.Duration {
	return 6*time.Second + time.Duration(random.Int64N(int64(3*time.Second)))
}

// breakMembers kills, stops and restarts processes of the bot.
func breakMembers(s *storm, random *rand.Rand, over <-chan struct{}) {
	for pause(random, 300*time.Millisecond, 2*time.Second, over) {
		m := s.members[random.IntN(len(s.members))]
		switch act := random.IntN(10); {
		case act < 4:
			m.signal(syscall.SIGKILL, time.Duration(random.Int64N(int64(2*time.Second))))
			s.did("killed a " + m.role)
		case act < 7:
			m.signal(syscall.SIGSTOP, 0)
			<-time.After(longStop(random))
			m.signal(syscall.SIGCONT, 0)
			s.did("stopped a " + m.role)
		default:
			m.signal(syscall.SIGTERM, 0)
			s.did("restarted a " + m.role)
		}
	}
}

// breakServers kills and stops Redis and PostgreSQL.
func breakServers(s *storm, random *rand.Rand, over <-chan struct{}) {
	for pause(random, 3*time.Second, 6*time.Second, over) {
		away := time.Duration(random.Int64N(int64(3 * time.Second)))
		switch random.IntN(4) {
		case 0:
			s.redis.kill()
			<-time.After(away)
			if err := s.redis.start(); err != nil {
				s.t.Errorf("Redis does not come back: %v", err)
				return
			}
			s.did("killed Redis")
		case 1:
			s.redis.signal(syscall.SIGSTOP)
			<-time.After(longStop(random))
			s.redis.signal(syscall.SIGCONT)
			s.did("stopped Redis")
		case 2:
			s.pg.Kill()
			<-time.After(away)
			s.pg.Restart()
			s.did("killed PostgreSQL")
		case 3:
			resume := s.pg.Stop()
			<-time.After(longStop(random))
			resume()
			s.did("stopped PostgreSQL")
		}
	}
}

// breakPlatform lets sends fail, or succeed without an answer. What it orders
// does not pile up while nothing is sent: one message would have all the faults.
func breakPlatform(s *storm, random *rand.Rand, over <-chan struct{}) {
	defer s.tg.Heal()
	for pause(random, 200*time.Millisecond, 2*time.Second, over) {
		fault := telegramtest.Fault{Method: "sendMessage", Times: 1}
		switch random.IntN(3) {
		case 0:
			fault.Act = telegramtest.Cut
			s.did("cut an answer of Telegram's")
		case 1:
			fault.Act, fault.Status, fault.Description = telegramtest.Refuse, 502, "Bad Gateway"
			s.did("failed a send")
		case 2:
			fault.Act, fault.Status, fault.Description, fault.RetryAfter = telegramtest.Refuse, 429, "Too Many Requests: retry after 1", 1
			s.did("limited a send")
		}
		s.tg.Heal()
		s.tg.Fail(fault)
	}
}

// full makes a fleet of two gateways and three workers.
func full(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t, stormModel)
	f.join("gateway-1", roleGateway)
	f.join("worker-1", roleWorker)
	f.join("gateway-2", roleGateway)
	f.join("worker-2", roleWorker)
	f.join("worker-3", roleWorker)
	return f
}

// stormSeed is one that was drawn once: a run that fails can be had again.
const stormSeed = 4

func TestFleetLosesNothingAndDoesNothingTwice(t *testing.T) {
	t.Parallel()
	s := &storm{fleet: full(t), seed: stormSeed, chats: 60, each: 15, lull: 4 * time.Second}
	s.run(90*time.Second, breakMembers, breakMembers, breakServers, breakPlatform)
	a := s.audit()
	t.Logf("%s", a)
	for _, wrong := range a.violations {
		t.Error(wrong)
	}
}
