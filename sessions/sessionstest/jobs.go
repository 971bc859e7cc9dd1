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
		{"a job comes back as it was begun, noted and ended", jobKept},
		{"the same call begins one job", jobBegunOnce},
		{"no more jobs run than may, for a session and for a person", jobLimits},
		{"of many that begin at once no more run than may", jobRush},
		{"a job ends once, and what is over is not stopped", jobEndsOnce},
		{"jobs whose end nobody was told of are listed, also after a restart", jobUntold},
		{"jobs go with their session, with their person, and with age", jobErased},
		{"nothing that was erased is left of jobs in any file", jobTraces},
	}
}

// plenty returns limits that no test's jobs reach.
func plenty() sessions.JobLimits { return sessions.JobLimits{Session: 100, Person: 100} }

func aJob(id, session, person string) sessions.Job {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return sessions.Job{
		ID: id, Session: session, Person: person, Agent: "main", Turn: "t1", Call: "c1", Tool: "exec_shell",
		Route: json.RawMessage(`{"at":"telegram:42"}`), Command: "make " + secret, Started: now, Deadline: now.Add(time.Hour), State: sessions.JobRunning,
	}
}

func beginJob(t testing.TB, s sessions.Jobs, j sessions.Job) {
	t.Helper()
	if err := s.BeginJob(t.Context(), j, plenty()); err != nil {
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

// jobIs fails the test unless the store has exactly this job.
func jobIs(t testing.TB, s sessions.Jobs, want sessions.Job) {
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

func jobIDs(t testing.TB, list []sessions.Job, err error) (ids []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range list {
		ids = append(ids, j.ID)
	}
	return ids
}

func jobKept(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	j := aJob("one", key, anna)
	j.Untrusted = true
	j.Command = "printf 'a\x00b'"
	beginJob(t, s, j)
	jobIs(t, s, j)
	if err := s.NoteOutput(t.Context(), j.ID, "half", 4); err != nil {
		t.Fatal(err)
	}
	j.Output, j.Printed = "half", 4
	jobIs(t, s, j)
	if n, err := s.StopJobs(t.Context(), key, j.ID, "why"); n != 1 || err != nil {
		t.Errorf("%d were asked to end, %v", n, err)
	}
	code := 137
	j.Stop, j.State, j.ExitCode, j.Detail, j.Output, j.Printed = "why", sessions.JobStopped, &code, "somebody stopped it", "whole", 5
	j.Ended = j.Started.Add(time.Minute)
	endJob(t, s, j)
	jobIs(t, s, j)
	if _, err := s.Job(t.Context(), "none"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("an unknown job gives %v", err)
	}
}

func jobBegunOnce(t *testing.T, p place) {
	both := p.stores()
	openLog(t, both[0], key, clockFence())
	beginJob(t, both[0], aJob("one", key, anna))
	again := aJob("one", key, anna)
	again.Command = "another"
	if err := both[1].BeginJob(t.Context(), again, plenty()); !errors.Is(err, sessions.ErrJobKnown) {
		t.Errorf("beginning it again gives %v", err)
	}
	if j, err := both[1].Job(t.Context(), "one"); err != nil || j.Command == "another" {
		t.Errorf("it became %+v, %v", j, err)
	}
	if err := both[0].BeginJob(t.Context(), aJob("two", "main:telegram:none", anna), plenty()); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a job of a session that is not there gives %v", err)
	}
}

func jobLimits(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	openLog(t, s, other, clockFence())
	most := sessions.JobLimits{Session: 2, Person: 3}
	begin := func(id, session, person string) error {
		return s.BeginJob(t.Context(), aJob(id, session, person), most)
	}
	for _, id := range []string{"a", "b"} {
		if err := begin(id, key, anna); err != nil {
			t.Fatal(err)
		}
	}
	limit, ok := errors.AsType[*sessions.JobLimitError](begin("c", key, berta))
	if !ok || limit.Person || limit.Most != 2 {
		t.Errorf("a third of the session gives %+v", limit)
	}
	if err := begin("d", other, anna); err != nil {
		t.Fatal(err)
	}
	limit, ok = errors.AsType[*sessions.JobLimitError](begin("e", other, anna))
	if !ok || !limit.Person || limit.Most != 3 {
		t.Errorf("a fourth of the person gives %+v", limit)
	}
	endJob(t, s, aJob("a", key, anna))
	if err := begin("e", other, anna); err != nil {
		t.Errorf("after one has ended there is no room: %v", err)
	}
}

func jobRush(t *testing.T, p place) {
	both := p.stores()
	openLog(t, both[0], key, clockFence())
	const most, tries = 3, 20
	var begun, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range tries {
		all.Go(func() {
			err := both[i%2].BeginJob(t.Context(), aJob(fmt.Sprint("job", i), key, anna), sessions.JobLimits{Session: most, Person: tries})
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

func jobEndsOnce(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	j := aJob("one", key, anna)
	beginJob(t, s, j)
	beginJob(t, s, aJob("two", key, anna))
	if n, err := s.StopJobs(t.Context(), other, "", "why"); n != 0 || err != nil {
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

func jobUntold(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	for i, id := range []string{"runs", "ended", "told", "silent"} {
		j := aJob(id, key, anna)
		j.Started = j.Started.Add(time.Duration(i) * time.Second)
		beginJob(t, s, j)
		j.Told = id == "silent"
		if id != "runs" {
			endJob(t, s, j)
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
	if ids := jobIDs(t, all, err); !slices.Equal(ids, []string{"silent", "told", "ended"}) {
		t.Errorf("the session's newest are %v", ids)
	}
	openLog(t, s, other, clockFence())
	beginJob(t, s, aJob("elsewhere", other, anna))
	running, err := s.RunningJobs(t.Context(), key)
	if ids := jobIDs(t, running, err); !slices.Equal(ids, []string{"runs"}) {
		t.Errorf("of the session there run %v", ids)
	}
}

func jobErased(t *testing.T, p place) {
	s := p.open()
	appendAll(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "a1", "mine")...)
	shared := openLog(t, s, other, clockFence())
	appendAll(t, shared, wholeTurn(anna, "a1", "hers")...)
	appendAll(t, shared, wholeTurn(berta, "b1", "ours")...)
	for _, j := range []sessions.Job{aJob("alone", key, anna), aJob("shared", other, anna), aJob("others", other, berta), aJob("ended", other, berta)} {
		beginJob(t, s, j)
	}
	endJob(t, s, aJob("ended", other, berta))
	left := func() []string {
		t.Helper()
		var ids []string
		for _, session := range []string{key, other} {
			list, err := s.JobsOf(t.Context(), session, 10)
			ids = append(ids, jobIDs(t, list, err)...)
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
	if endJob(t, s, aJob("shared", other, anna)) {
		t.Error("a job that was forgotten has ended")
	}
	if _, err := s.EraseBefore(t.Context(), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := left(); slices.Contains(got, "ended") {
		t.Errorf("of what is old there are %v", got)
	}
	openLog(t, s, other, clockFence())
	if _, err := s.EraseSession(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if got := left(); len(got) > 0 {
		t.Errorf("after their session was erased there are %v", got)
	}
}

func jobTraces(t *testing.T, p place) {
	if p.harness.Files == nil {
		t.Skip("a server keeps the files")
	}
	s := p.open()
	appendAll(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "a1", "x")...)
	for i := range 40 {
		beginJob(t, s, aJob(fmt.Sprint(i), key, anna))
	}
	if p.count(secret) == 0 {
		t.Fatal("the files do not hold the commands: the test cannot fail")
	}
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if n := p.count(secret); n != 0 {
		t.Errorf("%d traces are left", n)
	}
}
