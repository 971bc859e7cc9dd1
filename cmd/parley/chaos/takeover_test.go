package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// These are the longest times that a person may have to wait for an answer when a process of the fleet dies. The tests
// that measure them do not run at the same time as others.
const (
	workerTakeover  = 6 * time.Second
	gatewayTakeover = 10 * time.Second
)

func TestKilledWorkersSessionsGoOnElsewhere(t *testing.T) {
	const chats = 20
	var f *fleet
	hang := make(chan struct{})
	defer close(hang)
	f = newFleet(t, func(r agenttest.Request) agenttest.Response {
		if r.N <= chats {
			return agenttest.Reply("too late").WaitFor(hang)
		}
		return parleytest.EchoModel(r)
	})
	f.join("gateway", gateway)
	doomed := f.join("worker-1", worker)
	for c := range chats {
		f.Telegram.Say(int64(firstPerson+c), int64(firstPerson+c), "hello")
	}
	parleytest.WaitFor(t, "all turns to be under way", func() bool { return f.Model.Asked() == chats })
	f.join("worker-2", worker)
	killed := time.Now()
	doomed.signal(syscall.SIGKILL, time.Minute)
	var slowest time.Duration
	for c := range chats {
		if got := f.WaitSaid(int64(firstPerson+c), 1); len(got) != 1 || got[0] != "you said hello" {
			t.Errorf("chat %d was sent %q", firstPerson+c, got)
		}
		sent := f.Telegram.Sent(int64(firstPerson + c))
		slowest = max(slowest, sent[0].At.Sub(killed))
	}
	t.Logf("%d sessions of a killed worker: the last was answered after %v", chats, slowest)
	if slowest > workerTakeover {
		t.Errorf("the last session of a killed worker was answered after %v, want %v at most", slowest, workerTakeover)
	}
	if slowest < time.Second {
		t.Errorf("the sessions were answered after %v: nothing can have been held", slowest)
	}
}

func TestKilledGatewaysConnectionsGoOnElsewhere(t *testing.T) {
	f := newFleet(t, parleytest.EchoModel)
	doomed := f.join("gateway-1", gateway)
	f.join("worker", worker)
	f.Telegram.Say(2, 2, "hello")
	f.WaitSaid(2, 1)
	f.join("gateway-2", gateway)
	killed := time.Now()
	doomed.signal(syscall.SIGKILL, time.Minute)
	parleytest.WaitFor(t, "the connection to be gone", func() bool { return doomed.isDown() })
	f.Telegram.Say(2, 2, "and now")
	if got := f.WaitSaid(2, 2); got[1] != "you said and now" {
		t.Errorf("chat 2 was sent %q", got)
	}
	took := f.Telegram.Sent(2)[1].At.Sub(killed)
	t.Logf("the connection of a killed gateway: an answer after %v", took)
	if took > gatewayTakeover || took < time.Second {
		t.Errorf("a message after the gateway's death was answered %v after that, want between a second and %v", took, gatewayTakeover)
	}
}

// A process that ends in good order leaves nothing that others have to wait for. In this test no lease runs out, and
// still everything is answered, and no turn or send is interrupted.
func TestRollingRestartIsNoticedByNobody(t *testing.T) {
	s := newStorm(fullFleet(t), stormSeed, 30, 20, 2*time.Second)
	s.noAsks = true
	s.run(parleytest.Patience, rollingRestart)
	a := s.audit()
	t.Logf("%s", a)
	for _, wrong := range a.violations {
		t.Error(wrong)
	}
	if restarts := s.faults["restarted a worker"] + s.faults["restarted a gateway"]; restarts != restartRounds*len(s.members) {
		t.Errorf("%d processes were restarted under load, want %d", restarts, restartRounds*len(s.members))
	}
	if a.interrupted > 0 || a.repeats > 0 || a.givenUp > 0 || len(s.unexpected) > 0 {
		t.Errorf("%d sends were interrupted, %d repeated, %d turns given up; %v", a.interrupted, a.repeats, a.givenUp, s.unexpected)
	}
	if a.cutOff > 0 {
		t.Errorf("turns were resumed %d times that nobody had suspended", a.cutOff)
	}
}

// spareLeases makes the bus take no lease from a process for an hour, so that a lease that a process keeps when it ends
// is noticed.
func (f *fleet) spareLeases() {
	f.T.Helper()
	const spare = `
		local last, seen = string.match(redis.call('GET', KEYS[1]), '^(%d+) %d+ (%d+)$')
		redis.call('SET', KEYS[1], last .. ' ' .. string.format('%.0f', last + 3600e6) .. ' ' .. seen)
		return 1`
	for _, k := range f.busKeys() {
		if k.short() != "contact" {
			continue
		}
		if err := k.client.Eval(context.Background(), spare, []string{k.name}).Err(); err != nil {
			f.T.Fatal(err)
		}
	}
}

// restartRounds is how often a rolling restart restarts every process.
const restartRounds = 3

// rollingRestart restarts every process, one after another, while people get answers.
func rollingRestart(s *storm, _ *rand.Rand, _ <-chan struct{}) {
	s.spareLeases()
	for n, m := range slices.Repeat(s.members, restartRounds) {
		parleytest.WaitFor(s.T, "more turns to end", func() bool {
			ended := sqldbtest.Query(s.T, "pgx", s.pg.URL(), "SELECT count(*) FROM entries WHERE kind = 'turn_done'")
			turns, err := strconv.Atoi(ended[0])
			return err == nil && turns >= 5*(n+1)
		})
		before := m.countStarts()
		m.signal(syscall.SIGTERM, 0)
		parleytest.WaitFor(s.T, m.name+" to serve again", func() bool { return m.countStarts() > before })
		s.countFault("restarted a " + m.role)
	}
}

// isDown reports whether the process was killed and its successor has not started yet.
func (m *member) isDown() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.toldToEnd && m.cmd.Process.Signal(syscall.Signal(0)) != nil
}

func TestRedisAwayForHalfAMinute(t *testing.T) {
	t.Parallel()
	const away = 30 * time.Second
	s := newStorm(fullFleet(t), stormSeed, 30, 8, 5*time.Second)
	var lost []string
	s.run(parleytest.Patience, func(s *storm, _ *rand.Rand, _ <-chan struct{}) {
		<-time.After(5 * time.Second)
		server := s.redis.(*oneRedis).Server
		if err := server.Kill(); err != nil {
			s.T.Error(err)
		}
		s.countFault("took Redis away")
		<-time.After(away)
		if s.Telegram.Unconfirmed() == 0 {
			lost = append(lost, "every message was acknowledged while there was no Redis to keep it")
		}
		if err := server.Restart(); err != nil {
			s.T.Errorf("Redis does not come back: %v", err)
		}
	})
	a := s.audit()
	t.Logf("%s", a)
	for _, wrong := range slices.Concat(lost, a.violations) {
		t.Error(wrong)
	}
	if a.repeats > 0 || a.givenUp > 0 || len(s.unexpected) > 0 {
		t.Errorf("%d sends were repeated, %d turns given up; %v", a.repeats, a.givenUp, s.unexpected)
	}
	if a.slowest < away/2 {
		t.Errorf("the slowest answer took %v: nobody can have missed Redis", a.slowest)
	}
}
