package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/api/ongoing"
	"parley/sessions"
)

// The list shows running jobs first, then ended ones. A running job can be stopped.
func TestJobsAreListedAndStopped(t *testing.T) {
	var stopped []string
	x := newRig(t, func(x *rig) {
		x.cfg.Jobs = ongoing.Jobs{Kept: x.store, Stop: func(ctx context.Context, j sessions.Job) error {
			stopped = append(stopped, j.ID)
			_, err := x.store.StopJobs(ctx, j.Session, j.ID, "operator")
			return err
		}}
	})
	store := x.store
	began := time.Now().Add(-time.Hour)
	for i, id := range []string{"old", "new", "runs"} {
		session := map[string]string{"runs": "main:slack:C1"}[id]
		if session == "" {
			session = "main:slack:C2"
		}
		if _, err := store.Open(t.Context(), session, int64(i+1)); err != nil {
			t.Fatal(err)
		}
		j := sessions.Job{ID: id, Session: session, Person: "slack:U1", Command: "make " + id, Started: began.Add(time.Duration(i) * time.Minute), Deadline: began.Add(2 * time.Hour)}
		if err := store.BeginJob(t.Context(), j, sessions.JobLimits{Session: 9, Person: 9}); err != nil {
			t.Fatal(err)
		}
		if id == "runs" {
			continue
		}
		j.State, j.Ended, j.Output, j.Printed = sessions.JobFailed, j.Started.Add(10*time.Minute), "the end", 7
		if ours, err := store.EndJob(t.Context(), j); err != nil || !ours {
			t.Fatal(ours, err)
		}
	}
	list := func(query string) (ids []string, more bool) {
		t.Helper()
		page := into[struct {
			Jobs []ongoing.ListedJob
			More bool
		}](t, x.get("/v1/jobs"+query, readToken))
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
			if j.Output != "" {
				t.Errorf("%q lists what %s has printed", query, j.ID)
			}
		}
		return ids, page.More
	}
	for query, want := range map[string][]string{"": {"runs", "new", "old"}, "?limit=2": {"runs", "new"}, "?limit=1": {"runs"}, "?session=main:slack:C2": {"new", "old"}, "?session=main:slack:C2&limit=1": {"new"}} {
		if got, more := list(query); !slices.Equal(got, want) || more != strings.Contains(query, "limit") {
			t.Errorf("%q lists %q, more %v", query, got, more)
		}
	}
	one := into[ongoing.ListedJob](t, x.get("/v1/jobs/old", readToken))
	if one.Output != "the end" || one.State != sessions.JobFailed || one.Ended == nil || one.Command != "make old" {
		t.Errorf("shown is %+v", one)
	}
	for id, want := range map[string]int{"none": http.StatusNotFound, "old": http.StatusConflict, "runs": http.StatusAccepted} {
		if r := x.do("DELETE", "/v1/jobs/"+id, adminToken, ""); r.StatusCode != want {
			t.Errorf("%s is stopped: %d %s, want %d", id, r.StatusCode, r.body, want)
		}
	}
	if r := x.do("DELETE", "/v1/jobs/runs", readToken, ""); r.StatusCode != http.StatusForbidden || len(stopped) != 1 {
		t.Errorf("a reader stops it: %d, stopped were %q", r.StatusCode, stopped)
	}
	if one = into[ongoing.ListedJob](t, x.get("/v1/jobs/runs", readToken)); !one.Stopping {
		t.Errorf("asked to end it is %+v", one)
	}
}
