package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
	"parley/sessions/sqlstore"
	"parley/sessions/subagents"
)

// These are the ways in which people have sub-agents work.
const (
	awaitTasks = "await" // the turn waits for the reports
	spawnTasks = "spawn" // the reports come as messages
)

// taskPeople is how many people have sub-agents in a test.
const taskPeople = 4

var saysReport = regexp.MustCompile(`report of \d+\.\d+\.\d+\.`)

// isSubAgent reports whether a sub-agent asks the model.
func isSubAgent(r agenttest.Request) bool {
	return strings.Contains(r.Messages()[0].Content+r.Messages()[1].Content, "You are a sub-agent of")
}

// delegatingModel plays the scripted model. It gives the tasks that it is told to sub-agents, "KIND PERSON NUMBER TASKS",
// and says which reports it has got as results and which as messages. As a sub-agent, it writes a file and reports.
func delegatingModel(r agenttest.Request) agenttest.Response {
	turn := turnOf(r)
	said, results := saidIn(turn)
	lag := rand.N(150 * time.Millisecond)
	if isSubAgent(r) {
		if len(results) == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: fmt.Sprintf(`{"path":"done.txt","content":%q}`, said[0])}).After(lag)
		}
		return agenttest.Reply("report of " + said[0] + ".").After(lag)
	}
	var words []string
	for _, line := range said {
		kind, person, n, count := "", int64(0), 0, 0
		if _, err := fmt.Sscan(stripKindPrefix(line), &kind, &person, &n, &count); err != nil {
			return agenttest.Reply("not understood: " + line)
		}
		if len(results) < count {
			tool := map[string]string{awaitTasks: "task", spawnTasks: "sessions_spawn"}[kind]
			var calls []agenttest.ToolCall
			for i := range count {
				calls = append(calls, agenttest.ToolCall{Name: tool, Args: fmt.Sprintf(`{"prompt":"%d.%d.%d"}`, person, n, i)})
			}
			return agenttest.Calls(calls...)
		}
		words = append(words, fmt.Sprintf("re %d.%d", person, n))
		words = append(words, results[:count]...)
		results = results[count:]
	}
	for _, m := range turn {
		if m.Role == "user" && strings.Contains(m.Content, "The sub-agent main") {
			words = append(words, saysReport.FindAllString(m.Content, -1)...)
		}
	}
	return agenttest.Reply(strings.Join(append(words, "that is all"), "; ")).After(lag)
}

// Three sub-agents work at the same time when the worker is killed that has their sessions and their parent's. Each
// sub-agent finishes its work once, and reports once.
func TestFleetThreeSubAgentsOfAKilledWorkerReportOnceEach(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	var mu sync.Mutex
	first := 0
	f := newFleet(t, func(r agenttest.Request) agenttest.Response {
		if isSubAgent(r) {
			mu.Lock()
			defer mu.Unlock()
			if first++; first <= 3 {
				return agenttest.Reply("too late").WaitFor(hang)
			}
		}
		return delegatingModel(r)
	})
	f.join("gateway", gateway)
	doomed := f.join("worker-1", worker)
	f.Telegram.Say(firstPerson, firstPerson, fmt.Sprintf("%s %d 0 3", awaitTasks, firstPerson))
	parleytest.WaitFor(t, "the sub-agents to work side by side", func() bool { mu.Lock(); defer mu.Unlock(); return first == 3 })
	f.join("worker-2", worker)
	doomed.signal(syscall.SIGKILL, time.Minute)
	said := f.WaitSaid(firstPerson, 1)[0]
	for i := range 3 {
		if report := fmt.Sprintf("report of %d.0.%d.", firstPerson, i); strings.Count(said, report) != 1 {
			t.Errorf("%q is not once in %q", report, said)
		}
	}
	s := newStorm(f, stormSeed, 0, 0, time.Second)
	s.awaitTasks()
	if ends := s.auditTasks(); ends[subagents.Done] != 3 {
		t.Errorf("the tasks have ended as %v", ends)
	}
}

// TestFleetReportsEachTaskOnce makes people give tasks to sub-agents in a fleet of five processes. Even if these, Redis
// and PostgreSQL fail, each task begins one turn, and is reported once.
func TestFleetReportsEachTaskOnce(t *testing.T) {
	t.Parallel()
	tasksThroughChaos(t, stormSeed, 30*time.Second)
}

func tasksThroughChaos(t *testing.T, seed uint64, during time.Duration) {
	f := newFleet(t, delegatingModel)
	for _, m := range []struct{ name, role string }{
		{"gateway-1", gateway}, {"worker-1", worker}, {"gateway-2", gateway}, {"worker-2", worker}, {"worker-3", worker},
	} {
		f.join(m.name, m.role)
	}
	s := newStorm(f, seed, 0, 0, time.Second)
	s.armCrashpoints()
	s.points = map[string][]string{worker: {
		"task:recorded", "task:prepared", "task:running", "task:ended", "task:told", "task:reported", "spawn:prepared", "spawn:handed",
		"park:before", "park", "park:handed", "park:published", "unpark:before", "unpark", "c1", "c5", "c6", "c7:published", "settled",
	}}
	over := make(chan struct{})
	var people, broken sync.WaitGroup
	for i, breaks := range []func(*storm, *rand.Rand, <-chan struct{}){breakMembers, breakServers} {
		broken.Go(func() { breaks(s, rand.New(rand.NewPCG(seed, uint64(i))), over) })
	}
	for i := range taskPeople {
		people.Go(func() { s.giveTasks(int64(firstPerson+i), rand.New(rand.NewPCG(seed, uint64(3000+i))), over) })
	}
	<-time.After(during)
	close(over)
	broken.Wait()
	s.disarmCrashpoints()
	people.Wait()
	s.awaitTasks()
	s.endAll()
	close(s.stopWaking)
	s.waking.Wait()
	ends := s.auditTasks()
	if ends[subagents.Done] == 0 {
		t.Error("no task was done: the test has not seen what it is for")
	}
	t.Logf("seed %d: tasks ended as %v; %v", seed, ends, s.faults)
}

// giveTasks plays one person, who has one task done after another, and now and then stops them, until the storm is
// over.
func (s *storm) giveTasks(person int64, random *rand.Rand, over <-chan struct{}) {
	for n := 0; pause(random, 100*time.Millisecond, time.Second, over); n++ {
		kind := []string{awaitTasks, spawnTasks}[random.IntN(2)]
		before := len(s.Telegram.Sent(person))
		s.Telegram.Say(person, person, fmt.Sprintf("%s %d %d %d", kind, person, n, 1+random.IntN(3)))
		answers := []string{fmt.Sprintf("re %d.%d;", person, n), "given up on it", "given it up"}
		if random.IntN(5) == 0 && pause(random, 100*time.Millisecond, time.Second, over) {
			s.Telegram.Say(person, person, "/stop")
			answers = append(answers, "Stopped", "Nothing is running")
		}
		s.waitUntil(5*time.Minute, "an answer to "+answers[0], func() bool {
			all := strings.Join(parleytest.Texts(s.Telegram.Sent(person)[before:]), "\n")
			for _, answer := range answers {
				if strings.Contains(all, answer) {
					return true
				}
			}
			return false
		})
	}
}

// awaitTasks waits until every task has ended and was reported, and the bot has sent all messages.
func (s *storm) awaitTasks() {
	s.T.Helper()
	s.waitUntil(4*time.Minute, "all tasks to be told", func() bool {
		return len(s.queryRows("SELECT id FROM tasks WHERE told = 0")) == 0
	})
	s.waitUntil(3*time.Minute, "the bus to have nothing to do", func() bool { return len(leftovers(s.keys())) == 0 })
}

// auditTasks checks each task: how many turns it has begun, and how often its parent's session and its person were told
// of its end. It returns how many tasks have ended in which way.
func (s *storm) auditTasks() (ends map[string]int) {
	t := s.T
	t.Helper()
	store, err := sqlstore.Open(t.Context(), s.pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	interrupted := 0
	for _, row := range s.queryRows("SELECT sum(interrupted) FROM parts") {
		_, _ = fmt.Sscan(row, &interrupted)
	}
	ends = map[string]int{}
	for i := range taskPeople {
		person := int64(firstPerson + i)
		parent := fmt.Sprintf("main:telegram:%d", person)
		all, err := store.SubAgents().Of(t.Context(), parent, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		told, completed := s.reportsIn(store, parent)
		said := strings.Join(parleytest.Texts(s.Telegram.Sent(person)), "\n")
		for _, task := range all {
			ends[task.State]++
			if task.IsOpen() {
				t.Errorf("task %s is %s", task.ID, task.State)
			}
			turns := s.turnsIn(store, task.Session)
			if turns > 1 || turns == 0 && task.State == subagents.Done {
				t.Errorf("task %s, which is %s, has begun %d turns", task.ID, task.State, turns)
			}
			wasCompleted, over := completed[task.Turn]
			stopped := task.Stop != "" || task.Awaited && over && !wasCompleted // the report to a stopped turn is dropped
			if n := told["task:"+task.ID]; n > 1 || n == 0 && !stopped {
				t.Errorf("task %s, which is %s, is told in the log of %s %d times", task.ID, task.State, parent, n)
			}
			waits := task.Turn
			if !task.Awaited {
				waits = "task:" + task.ID
			}
			heard := strings.Count(said, "report of "+task.Title+".")
			if heard > 1+interrupted || heard == 0 && task.State == subagents.Done && !stopped && completed[waits] {
				t.Errorf("of task %s, which is %s, its person heard %d times, with %d sends that were cut off", task.ID, task.State, heard, interrupted)
			}
			delete(told, "task:"+task.ID)
		}
		for id := range told {
			t.Errorf("%s was told of %s, which there is not", parent, id)
		}
	}
	return ends
}

// reportsIn counts how often each report is in a session's log, and returns which of the session's turns are completed.
func (s *storm) reportsIn(store *sqlstore.Store, session string) (told map[string]int, completed map[string]bool) {
	told, completed = map[string]int{}, map[string]bool{}
	for e, err := range store.Read(s.T.Context(), session, 1) {
		if errors.Is(err, sessions.ErrNotFound) { // the person has sent no message
			return told, completed
		}
		if err != nil {
			s.T.Fatal(err)
		}
		if strings.HasPrefix(e.Cause, "task:") {
			told[e.Cause]++
		}
		if e.Kind == sessions.KindTurnDone {
			done, err := sessions.Decode[sessions.TurnDone](e)
			if err != nil {
				s.T.Fatal(err)
			}
			completed[e.Turn] = done.State == sessions.TurnCompleted
		}
	}
	return told, completed
}

// turnsIn returns the number of turns of a session, or 0 if there is no such session.
func (s *storm) turnsIn(store *sqlstore.Store, session string) (n int) {
	for e, err := range store.Read(s.T.Context(), session, 1) {
		if err != nil {
			return 0
		}
		if e.Kind == sessions.KindTurnStarted {
			n++
		}
	}
	return n
}
