package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/sessions"
	"parley/tools"
	"parley/tools/jobs"
)

const (
	maxListed    = 20
	stopWait     = 10 * time.Second // how long Stop waits for the job's end
	recheckEvery = 100 * time.Millisecond
)

var _ jobs.Backend = (*Runner)(nil)

// List implements jobs.Backend: it returns a session's newest jobs, at most maxListed.
func (r *Runner) List(ctx context.Context, session string) ([]jobs.Status, error) {
	all, err := r.cfg.Store.JobsOf(ctx, session, maxListed)
	if err != nil {
		return nil, fmt.Errorf("the jobs cannot be looked up now: %w", err)
	}
	list := []jobs.Status{}
	for _, j := range all {
		list = append(list, statusOf(j))
	}
	return list, nil
}

// Find implements jobs.Backend: it returns a session's job, and the end of its output.
func (r *Runner) Find(ctx context.Context, session, id string) (jobs.Status, string, error) {
	j, err := r.find(ctx, session, id)
	status := statusOf(j)
	status.Foreign = err == nil && status.Node != "" && !r.cfg.Nodes.TrustsJobs(ctx, status.Node)
	return status, j.Output, err
}

// find returns the record of a session's job. If there is none, the error tells the model so.
func (r *Runner) find(ctx context.Context, session, id string) (sessions.Job, error) {
	j, err := r.cfg.Store.Job(ctx, id)
	if err == nil && j.Session == session {
		return j, nil
	}
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return sessions.Job{}, fmt.Errorf("the job cannot be looked up now: %w", err)
	}
	all, err := r.cfg.Store.JobsOf(ctx, session, maxListed)
	if err != nil {
		return sessions.Job{}, fmt.Errorf("the jobs cannot be looked up now: %w", err)
	}
	there := "it has none"
	if len(all) > 0 {
		var ids []string
		for _, j := range all {
			ids = append(ids, j.ID)
		}
		there = "there are " + strings.Join(ids, ", ")
	}
	return sessions.Job{}, tools.Errorf(tools.InvalidArgs, "this conversation has no job %q: %s", tools.Clip(id, 64), there)
}

// Stop implements jobs.Backend: it asks a job to end, waits up to stopWait until it has ended, and returns its
// state at that time.
func (r *Runner) Stop(ctx context.Context, session, id string) (jobs.Status, error) {
	j, err := r.find(ctx, session, id)
	if err != nil || j.State != sessions.JobRunning {
		return statusOf(j), err
	}
	if _, err := r.cfg.Store.StopJobs(ctx, session, id, causeTool); err != nil {
		return statusOf(j), fmt.Errorf("the job could not be asked to end: %w", err)
	}
	r.checkNow()
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	for {
		now, err := r.cfg.Store.Job(ctx, id)
		switch {
		case errors.Is(err, sessions.ErrNotFound):
			return statusOf(j), tools.Errorf(tools.ExecutionFailed, "the job was forgotten meanwhile")
		case err == nil && now.State != sessions.JobRunning:
			return statusOf(now), nil
		case err == nil:
			j = now
		}
		select {
		case <-time.After(recheckEvery):
		case <-ctx.Done():
			return statusOf(j), tools.Errorf(tools.Timeout, "the job was asked to end and has not ended yet: job_status tells when it has")
		}
	}
}

// AskToStop asks a job to end because an operator wants it to. Whichever process runs the job ends it, and the
// job's session is told.
func (r *Runner) AskToStop(ctx context.Context, j sessions.Job) error {
	if _, err := r.cfg.Store.StopJobs(ctx, j.Session, j.ID, causeOperator); err != nil {
		return fmt.Errorf("ask job %s to end: %w", j.ID, err)
	}
	r.checkNow()
	return nil
}

// StopAll implements agent.Jobs: it asks all running jobs of a session to end, records the cause, and returns how
// many were asked for it; a repeated call returns the same number.
func (r *Runner) StopAll(ctx context.Context, session, cause string) (int, error) {
	n, err := r.cfg.Store.StopJobs(ctx, session, "", cause)
	if err == nil && n > 0 {
		r.checkNow()
	}
	return n, err
}

// Count implements agent.Jobs: it returns how many jobs of a session are running.
func (r *Runner) Count(ctx context.Context, session string) (int, error) {
	all, err := r.cfg.Store.RunningJobs(ctx, session)
	return len(all), err
}

// NetworkedJob returns words that name a running job in the call's session that may reach the network, or ""
// if there is none.
func (r *Runner) NetworkedJob(ctx context.Context, call tools.Call) (string, error) {
	all, err := r.cfg.Store.RunningJobs(ctx, call.Session)
	if err != nil {
		return "", fmt.Errorf("look for jobs that reach the network: %w", err)
	}
	for _, j := range all {
		var to route
		if json.Unmarshal(j.Route, &to) != nil || !to.Offline && to.Node == "" { // on a node it can't read this workspace
			return "the job " + j.ID, nil
		}
	}
	return "", nil
}

// HasRunningJob reports whether a job is running in the workspace of the call's session.
func (r *Runner) HasRunningJob(ctx context.Context, call tools.Call) (bool, error) {
	all, err := r.cfg.Store.RunningJobs(ctx, call.Session)
	if err != nil {
		return false, fmt.Errorf("look for jobs that run: %w", err)
	}
	return slices.ContainsFunc(all, func(j sessions.Job) bool { return routeOf(j).Node == "" }), nil
}

// checkNow makes this process check at once whether any of its jobs must end.
func (r *Runner) checkNow() {
	select {
	case r.checkStopsNow <- struct{}{}:
	default:
	}
}

func statusOf(j sessions.Job) jobs.Status {
	until := j.Ended
	if until.IsZero() {
		until = time.Now()
	}
	return jobs.Status{
		ID: j.ID, State: j.State, ExitCode: j.ExitCode, Detail: j.Detail, Command: j.Command, Started: j.Started.UTC().Format(time.RFC3339),
		Seconds: int64(until.Sub(j.Started).Seconds()), Printed: j.Printed, Folder: jobs.Folder(j.ID), File: jobs.File(j.ID), Node: routeOf(j).Node,
	}
}
