package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions"
)

const (
	stopEvery  = 500 * time.Millisecond // how often a process checks whether its jobs have to end
	watchEvery = 3 * time.Second        // how often the watching process lists the jobs whose process may be gone
	watchName  = "jobs"                 // the hold of the one process in a fleet that watches all jobs
)

// Run runs the jobs that are started in this process until ctx is done. Then it ends them, reports them as
// lost, and returns when none are left. Meanwhile, if no other process does so, it looks for jobs whose process
// has died, and reports these as lost.
func (r *Runner) Run(ctx context.Context) error {
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	r.mu.Lock()
	r.jobsContext = base
	r.mu.Unlock()
	close(r.ready)
	looking, enough := context.WithCancel(context.WithoutCancel(ctx))
	var beside sync.WaitGroup
	beside.Go(func() { r.endStopped(looking) })
	err := bus.WhileHeld(ctx, r.cfg.Bus, watchName, func(held context.Context) error {
		r.watch(held)
		return nil
	})
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	end(errDrained)
	r.jobs.Wait()
	enough()
	beside.Wait()
	if err != nil {
		return fmt.Errorf("watch the jobs: %w", err)
	}
	return nil
}

// endStopped ends those jobs of this process that somebody has asked to end, or whose session was erased, no
// matter which process received the request.
func (r *Runner) endStopped(ctx context.Context) {
	tick := time.NewTicker(stopEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.checkStopsNow:
		case <-ctx.Done():
			return
		}
		mine := r.runningHere()
		if len(mine) == 0 {
			continue
		}
		open, err := r.cfg.Store.OpenJobs(ctx)
		if err != nil {
			if ctx.Err() == nil {
				r.cfg.Log.Warn("it cannot be seen whether jobs are to end; trying again", slog.Any("error", err))
			}
			continue
		}
		known := map[string]sessions.OpenJob{}
		for _, j := range open {
			known[j.ID] = j
		}
		for id, cancel := range mine {
			switch j, there := known[id]; {
			case !there, j.Stop == causeForgotten:
				cancel(errForgotten)
			case j.Stop != "":
				cancel(errStopped)
			}
		}
	}
}

// runningHere returns the jobs that run in this process, each with the function that ends it.
func (r *Runner) runningHere() map[string]context.CancelCauseFunc {
	r.mu.Lock()
	defer r.mu.Unlock()
	mine := make(map[string]context.CancelCauseFunc, len(r.running))
	maps.Copy(mine, r.running)
	return mine
}

// watch waits for the hold of each job whose end has not been reported, and reports the end once it has the
// hold.
func (r *Runner) watch(held context.Context) {
	var mu sync.Mutex
	watched := map[string]bool{}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		open, err := r.cfg.Store.OpenJobs(held)
		if err != nil && held.Err() == nil {
			r.cfg.Log.Warn("it cannot be seen which jobs there are; trying again", slog.Any("error", err))
		}
		for _, j := range open {
			mu.Lock()
			known := watched[j.ID]
			watched[j.ID] = true
			mu.Unlock()
			if known {
				continue
			}
			waiting.Go(func() {
				r.takeOver(held, j.ID)
				mu.Lock()
				defer mu.Unlock()
				delete(watched, j.ID)
			})
		}
		select {
		case <-tick.C:
		case <-held.Done():
			return
		}
	}
}

// takeOver waits until no process holds a job any longer, and then finishes what the job's process left undone.
func (r *Runner) takeOver(ctx context.Context, id string) {
	held, release, err := r.cfg.Bus.Hold(ctx, holdName(id))
	if err != nil {
		return // this process no longer watches
	}
	defer release()
	log := r.cfg.Log.With(slog.String("job", id))
	var goesOn *sessions.Job // on its node
	err = r.retryUntilDone(held, log, func() error {
		j, err := r.cfg.Store.Job(held, id)
		if errors.Is(err, sessions.ErrNotFound) || err == nil && j.State != sessions.JobRunning {
			return nil
		}
		if err != nil {
			return err
		}
		if routeOf(j).Node != "" {
			goesOn = &j
			return nil
		}
		j.State, j.Detail, j.Ended = sessions.JobLost, "the process that ran it died, or was cut off from the others", time.Now()
		if j.Stop != "" {
			j.State, j.Detail = sessions.JobStopped, "it stopped with the process that ran it"
		}
		ours, err := r.cfg.Store.EndJob(held, j)
		if err == nil && ours {
			log.Warn("a job is lost", slog.String("session", j.Session))
			r.tellWatchers(j)
			r.audit(held, j, log)
		}
		return err
	})
	switch {
	case err != nil:
	case goesOn != nil:
		running := r.register(held, id)
		defer r.deregister(id)
		r.followOnNode(running, held, *goesOn)
	default:
		r.tellEnd(held, id, log)
	}
}
