package sessionstest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/sessions"
)

func jobTests() []test {
	return []test{
		{"a job comes back as it was begun, noted and ended", testJobKept},
		{"the same call begins one job", testJobBeginsOnce},
		{"no more jobs run than may, for a session and for a person", testJobLimits},
		{"of many that begin at once no more run than may", testJobRush},
		{"a job ends once, and what is over is not stopped", testJobEndsOnce},
		{"jobs whose end nobody was told of are listed, also after a restart", testJobUntold},
		{"jobs go with their session, with their person, and with age", testJobErased},
		{"nothing that was erased is left of jobs in any file", testJobTraces},
	}
}

// ampleLimits returns limits that no test's jobs reach.
func ampleLimits() sessions.JobLimits { return sessions.JobLimits{Session: 100, Person: 100} }

// newJob returns a job of a session, begun by a person.
func newJob(id, session, person string) sessions.Job {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return sessions.Job{
		ID: id, Session: session, Person: person, Agent: "main", Turn: "t1", Call: "c1", Tool: "exec_shell",
		Route: json.RawMessage(`{"at":"telegram:42"}`), Command: "make " + secret, Started: now, Deadline: now.Add(time.Hour), State: sessions.JobRunning,
	}
}

// beginJob begins a job within ampleLimits, and fails the test if that fails.
func beginJob(t testing.TB, s sessions.Jobs, j sessions.Job) {
	t.Helper()
	if err := s.BeginJob(t.Context(), j, ampleLimits()); err != nil {
		t.Fatal(err)
	}
}

// endJob ends a job, and returns what EndJob has returned.
func endJob(t testing.TB, s sessions.Jobs, j sessions.Job) bool {
	t.Helper()
	if j.State == sessions.JobRunning {
		j.State = sessions.JobExited
	}
	if j.Ended.IsZero() {
		j.Ended = time.Now()
	}
	ours, err := s.EndJob(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return ours
}

// wantJob fails the test unless the store has exactly this job.
func wantJob(t testing.TB, s sessions.Jobs, want sessions.Job) {
	t.Helper()
	got, err := s.Job(t.Context(), want.ID)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if err := errors.Join(errA, errB); err != nil || string(a) != string(b) {
		t.Errorf("the job is\n%s\nwant\n%s %v", a, b, err)
	}
}

// idsOfJobs returns the ids of the jobs that a call has listed; err is the call's error. It fails the test if
// the list has what they have printed.
func idsOfJobs(t testing.TB, list []sessions.Job, err error) (ids []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range list {
		ids = append(ids, j.ID)
		if j.Output != "" {
			t.Errorf("a list has %q, what %s has printed", j.Output, j.ID)
		}
	}
	return ids
}

func testJobKept(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	j := newJob("one", key, anna)
	j.Untrusted = true
	j.Command = "printf 'a\x00b'"
	beginJob(t, s, j)
	wantJob(t, s, j)
	if err := s.NoteOutput(t.Context(), j.ID, "half", 4); err != nil {
		t.Fatal(err)
	}
	j.Output, j.Printed = "half", 4
	wantJob(t, s, j)
	if n, err := s.StopJobs(t.Context(), key, j.ID, "why"); n != 1 || err != nil {
		t.Errorf("%d were asked to end, %v", n, err)
	}
	code := 137
	j.Stop, j.State, j.ExitCode, j.Detail, j.Output, j.Printed = "why", sessions.JobStopped, &code, "somebody stopped it", "whole", 5
	j.Ended = j.Started.Add(time.Minute)
	endJob(t, s, j)
	wantJob(t, s, j)
	if _, err := s.Job(t.Context(), "none"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("an unknown job gives %v", err)
	}
}

func testJobBeginsOnce(t *testing.T, p place) {
	both := p.stores()
	openLog(t, both[0], key, clockFence())
	beginJob(t, both[0], newJob("one", key, anna))
	again := newJob("one", key, anna)
	again.Command = "another"
	if err := both[1].BeginJob(t.Context(), again, ampleLimits()); !errors.Is(err, sessions.ErrJobKnown) {
		t.Errorf("beginning it again gives %v", err)
	}
	if j, err := both[1].Job(t.Context(), "one"); err != nil || j.Command == "another" {
		t.Errorf("it became %+v, %v", j, err)
	}
	if err := both[0].BeginJob(t.Context(), newJob("two", "main:telegram:none", anna), ampleLimits()); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a job of a session that is not there gives %v", err)
	}
}

func testJobLimits(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	openLog(t, s, otherKey, clockFence())
	most := sessions.JobLimits{Session: 2, Person: 3}
	begin := func(id, session, person string) error {
		return s.BeginJob(t.Context(), newJob(id, session, person), most)
	}
	for _, id := range []string{"a", "b"} {
		if err := begin(id, key, anna); err != nil {
			t.Fatal(err)
		}
	}
	limit, ok := errors.AsType[*sessions.JobLimitError](begin("c", key, berta))
	if !ok || limit.Person || limit.Limit != 2 {
		t.Errorf("a third of the session gives %+v", limit)
	}
	if err := begin("d", otherKey, anna); err != nil {
		t.Fatal(err)
	}
	limit, ok = errors.AsType[*sessions.JobLimitError](begin("e", otherKey, anna))
	if !ok || !limit.Person || limit.Limit != 3 {
		t.Errorf("a fourth of the person gives %+v", limit)
	}
	endJob(t, s, newJob("a", key, anna))
	if err := begin("e", otherKey, anna); err != nil {
		t.Errorf("after one has ended there is no room: %v", err)
	}
}

func testJobRush(t *testing.T, p place) {
	both := p.stores()
	openLog(t, both[0], key, clockFence())
	const most, tries = 3, 20
	var begun, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range tries {
		all.Go(func() {
			err := both[i%2].BeginJob(t.Context(), newJob(fmt.Sprint("job", i), key, anna), sessions.JobLimits{Session: most, Person: tries})
			_, limited := errors.AsType[*sessions.JobLimitError](err)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				begun++
			case limited:
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if begun != most || refused != tries-most {
		t.Errorf("%d were begun and %d refused, %d may run", begun, refused, most)
	}
}

func testJobEndsOnce(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	j := newJob("one", key, anna)
	beginJob(t, s, j)
	beginJob(t, s, newJob("two", key, anna))
	if n, err := s.StopJobs(t.Context(), otherKey, "", "why"); n != 0 || err != nil {
		t.Errorf("another session stopped %d, %v", n, err)
	}
	for range 2 {
		if n, err := s.StopJobs(t.Context(), key, "", "why"); n != 2 || err != nil {
			t.Errorf("%d were asked to end, %v", n, err)
		}
	}
	j.State = sessions.JobStopped
	if !endJob(t, s, j) {
		t.Error("it did not end")
	}
	j.State = sessions.JobLost
	if endJob(t, s, j) {
		t.Error("it ended twice")
	}
	if n, err := s.StopJobs(t.Context(), key, "one", "another why"); n != 0 || err != nil {
		t.Errorf("%d that are over were asked to end, %v", n, err)
	}
	if err := s.NoteOutput(t.Context(), "one", "late", 4); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Job(t.Context(), "one"); err != nil || got.State != sessions.JobStopped || got.Output != "" {
		t.Errorf("it is %+v, %v", got, err)
	}
}

func testJobUntold(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	for i, id := range []string{"runs", "ended", "told", "silent"} {
		j := newJob(id, key, anna)
		j.Started = j.Started.Add(time.Duration(i) * time.Second)
		beginJob(t, s, j)
		j.Told = id == "silent"
		if id != "runs" {
			j.Output, j.Printed = "much", 4
			endJob(t, s, j)
		} else if err := s.NoteOutput(t.Context(), id, "much", 4); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.NoteJobTold(t.Context(), "told"), s.NoteJobTold(t.Context(), "runs")); err != nil {
		t.Fatal(err)
	}
	s = p.reopen(s)
	open, err := s.OpenJobs(t.Context())
	want := []sessions.OpenJob{{ID: "runs", State: sessions.JobRunning}, {ID: "ended", State: sessions.JobExited}}
	if err != nil || !slices.Equal(open, want) {
		t.Errorf("open are %+v, %v", open, err)
	}
	all, err := s.JobsOf(t.Context(), key, 3)
	if ids := idsOfJobs(t, all, err); !slices.Equal(ids, []string{"silent", "told", "ended"}) {
		t.Errorf("the session's newest are %v", ids)
	}
	openLog(t, s, otherKey, clockFence())
	beginJob(t, s, newJob("elsewhere", otherKey, anna))
	running, err := s.RunningJobs(t.Context(), key)
	if ids := idsOfJobs(t, running, err); !slices.Equal(ids, []string{"runs"}) {
		t.Errorf("of the session there run %v", ids)
	}
	for limit, want := range map[int][]string{9: {"runs", "elsewhere"}, 1: {"runs"}} {
		all, err := s.AllRunningJobs(t.Context(), limit)
		if ids := idsOfJobs(t, all.Jobs, err); !slices.Equal(ids, want) || all.Count != 2 {
			t.Errorf("in all %d run, and of those at most %d are %v", all.Count, limit, ids)
		}
	}
	ended, err := s.EndedJobs(t.Context(), 2)
	if ids := idsOfJobs(t, ended, err); len(ids) != 2 || slices.Contains(ids, "runs") || ended[0].Printed != 4 {
		t.Errorf("ended have %v", ids)
	}
}

func testJobErased(t *testing.T, p place) {
	s := p.open()
	mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "a1", "mine")...)
	shared := openLog(t, s, otherKey, clockFence())
	mustAppend(t, shared, wholeTurn(anna, "a1", "hers")...)
	mustAppend(t, shared, wholeTurn(berta, "b1", "ours")...)
	for _, j := range []sessions.Job{newJob("alone", key, anna), newJob("shared", otherKey, anna), newJob("others", otherKey, berta), newJob("ended", otherKey, berta)} {
		beginJob(t, s, j)
	}
	endJob(t, s, newJob("ended", otherKey, berta))
	left := func() []string {
		t.Helper()
		var ids []string
		for _, session := range []string{key, otherKey} {
			list, err := s.JobsOf(t.Context(), session, 10)
			ids = append(ids, idsOfJobs(t, list, err)...)
		}
		slices.Sort(ids)
		return ids
	}
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	if got := left(); !slices.Equal(got, []string{"ended", "others"}) {
		t.Errorf("after a person was forgotten there are %v", got)
	}
	if endJob(t, s, newJob("shared", otherKey, anna)) {
		t.Error("a job that was forgotten has ended")
	}
	if _, err := s.EraseBefore(t.Context(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := left(); slices.Contains(got, "ended") {
		t.Errorf("of what is old there are %v", got)
	}
	openLog(t, s, otherKey, clockFence())
	if _, err := s.EraseSession(t.Context(), otherKey); err != nil {
		t.Fatal(err)
	}
	if got := left(); len(got) > 0 {
		t.Errorf("after their session was erased there are %v", got)
	}
}

func testJobTraces(t *testing.T, p place) {
	if p.harness.Files == nil {
		t.Skip("a server keeps the files")
	}
	s := p.open()
	mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "a1", "x")...)
	for i := range 40 {
		beginJob(t, s, newJob(fmt.Sprint(i), key, anna))
	}
	if p.countInFiles(secret) == 0 {
		t.Fatal("the files do not hold the commands: the test cannot fail")
	}
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if n := p.countInFiles(secret); n != 0 {
		t.Errorf("%d traces are left", n)
	}
}
