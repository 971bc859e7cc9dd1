package chaos

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/tools/sandbox"
)

// These are the kinds of jobs that people start. Each job counts its runs in its folder.
const (
	shortJob = "short" // ends by itself
	longJob  = "long"  // runs until somebody stops it
)

// jobLine returns the command of a job. The arguments of its processes contain the mark.
func jobLine(kind, mark string) string {
	line := `echo run >>"$JOB_DIR/runs"; `
	if kind == longJob {
		return line + "setsid sleep " + mark + " & sleep " + mark
	}
	return line + "sleep 0.3; exit 3"
}

var (
	saysJobEnded = regexp.MustCompile(`The job ([a-z2-7]{10}).*?, started at .*?(ended with exit code 3|is lost|was (?:ended|killed)|could(?:n't| not) be run)`)
	namesJob     = regexp.MustCompile(`"job_id":"([a-z2-7]{10})"`)
)

// backgroundModel plays the scripted model. It starts the job that it is told to start, "KIND NUMBER MARK", and answers
// that it has started it, and which jobs it was told have ended since.
func backgroundModel(r agenttest.Request) agenttest.Response {
	turn := turnOf(r)
	said, results := saidIn(turn)
	if len(results) < len(said) {
		kind, rest, _ := strings.Cut(stripKindPrefix(said[len(results)]), " ")
		_, mark, _ := strings.Cut(rest, " ")
		return agenttest.Calls(agenttest.ToolCall{Name: "exec_shell", Args: fmt.Sprintf(`{"command":%q,"background":true}`, jobLine(kind, mark))})
	}
	var words []string
	for i, what := range said {
		words = append(words, "re "+stripKindPrefix(what))
		if m := namesJob.FindStringSubmatch(results[i]); m == nil {
			words = append(words, "and not: "+results[i])
		}
	}
	for _, m := range turn {
		for _, end := range saysJobEnded.FindAllStringSubmatch(m.Content, -1) {
			if m.Role == "user" {
				words = append(words, "heard "+end[1]+" "+end[2])
			}
		}
	}
	return agenttest.Reply(strings.Join(words, "; ")).After(rand.N(100 * time.Millisecond))
}

// TestFleetTellsEachJobOnce makes people run jobs in a fleet of five processes. Even if these, Redis and PostgreSQL
// fail, each job runs at most once, its end is reported once, and none of its processes is left.
func TestFleetTellsEachJobOnce(t *testing.T) {
	t.Parallel()
	jobsThroughChaos(t, stormSeed, 40*time.Second)
}

func jobsThroughChaos(t *testing.T, seed uint64, during time.Duration) {
	f := newFleet(t, backgroundModel)
	needsSandbox(t)
	for _, m := range []struct{ name, role string }{
		{"gateway-1", gateway}, {"worker-1", worker}, {"gateway-2", gateway}, {"worker-2", worker}, {"worker-3", worker},
	} {
		f.join(m.name, m.role)
	}
	s := newStorm(f, seed, 0, 0, time.Second)
	s.armCrashpoints()
	s.points = map[string][]string{worker: {"job:held", "job:begun", "job:ended", "job:recorded", "job:told", "c1", "c4:held", "c5:before", "c6", "settled"}}
	mark := fmt.Sprintf("300%09d", rand.IntN(1e9))
	over := make(chan struct{})
	var people, broken sync.WaitGroup
	for i, breaks := range []func(*storm, *rand.Rand, <-chan struct{}){breakMembers, breakServers} {
		broken.Go(func() { breaks(s, rand.New(rand.NewPCG(seed, uint64(i))), over) })
	}
	for i := range 6 {
		people.Go(func() { s.runJobs(int64(firstPerson+i), mark, rand.New(rand.NewPCG(seed, uint64(2000+i))), over) })
	}
	<-time.After(during)
	close(over)
	broken.Wait()
	s.disarmCrashpoints()
	people.Wait()
	s.endJobs(mark)
	s.endAll()
	close(s.stopWaking)
	s.waking.Wait()
	if left := sleepingProcesses(mark); len(left) > 0 {
		t.Errorf("of jobs there is left %v", left)
	}
	s.auditJobs()
	t.Logf("seed %d: %v", seed, s.faults)
}

// needsSandbox skips the test if the machine cannot run commands in a sandbox.
func needsSandbox(t *testing.T) {
	t.Helper()
	program, err := parleytest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sandbox.Open(t.Context(), sandbox.Config{Mode: sandbox.Auto, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: program, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Skipf("NOT TESTED: no sandbox works on this machine: %v", err)
	}
}

// runJobs plays one person, who starts one job after another, and stops those that do not end by themselves, until the
// storm is over.
func (s *storm) runJobs(person int64, mark string, random *rand.Rand, over <-chan struct{}) {
	for n := 0; pause(random, 100*time.Millisecond, time.Second, over); n++ {
		kind := []string{shortJob, longJob}[random.IntN(2)]
		before := len(s.Telegram.Sent(person))
		what := fmt.Sprintf("%s %d %s", kind, n, mark)
		s.Telegram.Say(person, person, what)
		s.waitUntil(5*time.Minute, "an answer to "+what, func() bool {
			all := strings.Join(parleytest.Texts(s.Telegram.Sent(person)[before:]), "\n")
			return strings.Contains(all, "re "+what) || tellsItGaveUp(all)
		})
		if kind == longJob && pause(random, 100*time.Millisecond, 3*time.Second, over) {
			s.Telegram.Say(person, person, "/stop")
		}
	}
}

// endJobs stops the jobs that still run once the fleet works again, and waits until every end is reported and everybody
// is done.
func (s *storm) endJobs(mark string) {
	s.T.Helper()
	open := func(which string) int { return len(s.queryRows("SELECT id FROM jobs WHERE " + which)) }
	for i := range 6 {
		s.Telegram.Say(int64(firstPerson+i), int64(firstPerson+i), "/stop")
	}
	s.waitUntil(3*time.Minute, "all jobs to end", func() bool { return open("state = 'running'") == 0 })
	s.waitUntil(3*time.Minute, "the processes of jobs to be gone", func() bool { return len(sleepingProcesses(mark)) == 0 })
	s.waitUntil(3*time.Minute, "all ends to be told", func() bool { return open("told = 0") == 0 })
	s.waitUntil(3*time.Minute, "the bus to have nothing to do", func() bool { return len(leftovers(s.keys())) == 0 })
}

// queryRows runs a query on the fleet's PostgreSQL.
func (s *storm) queryRows(query string) []string {
	return sqldbtest.Query(s.T, "pgx", s.pg.URL(), query)
}

// sleepingProcesses returns the sleep processes whose arguments contain a text.
func sleepingProcesses(mark string) (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if raw, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(raw), "sleep\x00") && strings.Contains(string(raw), mark) {
			found = append(found, name)
		}
	}
	return found
}

// auditJobs checks each job: how often it ran, and how often its session and its person were told of its end.
func (s *storm) auditJobs() {
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
	ends := map[string]int{}
	for i := range 6 {
		session := fmt.Sprintf("main:telegram:%d", firstPerson+i)
		jobs, err := store.JobsOf(t.Context(), session, 1000)
		if err != nil {
			t.Fatal(err)
		}
		told, completed := map[string]int{}, map[string]bool{}
		for e, err := range store.Read(t.Context(), session, 1) {
			if err != nil {
				t.Fatal(err)
			}
			if id, ok := strings.CutPrefix(e.Cause, "job:"); ok {
				told[id]++
			}
			if e.Kind == sessions.KindTurnDone { // /stop also ends the turn that was to report the end of a job
				done, err := sessions.Decode[sessions.TurnDone](e)
				if err != nil {
					t.Fatal(err)
				}
				completed[e.Turn] = done.State == sessions.TurnCompleted
			}
		}
		said := strings.Join(parleytest.Texts(s.Telegram.Sent(int64(firstPerson+i))), "\n")
		for _, j := range jobs {
			ends[j.State]++
			raw, _ := os.ReadFile(filepath.Join(s.root, "main", fmt.Sprintf("telegram:%d", firstPerson+i), "jobs", j.ID, "runs"))
			runs := strings.Count(string(raw), "run\n")
			if runs > 1 || runs == 0 && j.State == sessions.JobExited {
				t.Errorf("job %s, which %s, ran %d times", j.ID, j.State, runs)
			}
			if j.Told && told[j.ID] != 1 && j.Detail != "the turn ended before the job was started" {
				t.Errorf("job %s, which is %s, is in the log of %s %d times", j.ID, j.State, session, told[j.ID])
			}
			heard := strings.Count(said, "heard "+j.ID)
			if most := 1 + interrupted; heard > most || heard == 0 && completed["job:"+j.ID] {
				t.Errorf("of job %s, which is %s, its person heard %d times, want one to %d", j.ID, j.State, heard, most)
			}
			delete(told, j.ID)
		}
		for id := range told {
			t.Errorf("%s was told of a job %s that there is not", session, id)
		}
	}
	if len(ends) == 0 {
		t.Error("there were no jobs: the test has not seen what it is for")
	}
	t.Logf("jobs ended as %v, %d sends were cut off", ends, interrupted)
}
