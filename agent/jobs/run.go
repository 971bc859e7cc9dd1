package jobs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions"
	"parley/tools"
	"parley/tools/jobs"
	"parley/tools/sandbox"
)

const (
	saveOutputEvery = 2 * time.Second // how often a job's output is written to the store
	// endGrace is how long recording and reporting the ends of jobs may take after this process is asked to end,
	// or the hold is lost. The next process that holds the job does the rest.
	endGrace = 5 * time.Second
)

// run runs a job to its end, and reports the end to its session.
func (r *Runner) run(ctx context.Context, j sessions.Job, call tools.Call, c sandbox.Command) {
	log := r.cfg.Log.With(slog.String("job", j.ID), slog.String("session", j.Session), slog.String("person", j.Person))
	log.Info("a job begins")
	j = r.runCommand(ctx, j, c, log)
	r.cfg.Changed(call)
	r.end(ctx, j, log)
}

// register adds a job to those that run in this process, and returns the job's context. It ends with held, which is
// the context of the job's hold, or when somebody ends the job. The caller calls deregister afterwards.
func (r *Runner) register(held context.Context, id string) context.Context {
	ctx, cancel := context.WithCancelCause(held)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[id] = cancel
	return ctx
}

func (r *Runner) deregister(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[id](nil)
	delete(r.running, id)
}

// runCommand runs the job's command, and returns the job's record with the state in which the command ended.
func (r *Runner) runCommand(ctx context.Context, j sessions.Job, c sandbox.Command, log *slog.Logger) sessions.Job {
	file, err := r.cfg.Create(ctx, j.Session, jobs.File(j.ID))
	if err != nil {
		return failedJob(j, "its folder couldn't be made: "+err.Error())
	}
	out := jobs.NewOutput(file)
	defer out.Close()
	c.Output = out.Write
	timed, cancel := context.WithDeadline(ctx, j.Deadline)
	defer cancel()
	over := make(chan struct{})
	var noting sync.WaitGroup
	noting.Go(func() { r.saveOutputRegularly(ctx, j, out, over, log) })
	began := time.Now()
	result, err := r.cfg.Sandbox.Run(timed, c)
	close(over)
	noting.Wait()
	j = withCommandEnd(j, result, err, time.Since(began))
	j.Output, j.Printed, _ = out.End(r.cfg.Redact)
	return j
}

// saveOutputRegularly writes a job's output so far to the store at intervals, and tells watchers that there is more,
// until ended is closed.
func (r *Runner) saveOutputRegularly(ctx context.Context, j sessions.Job, out *jobs.Output, ended <-chan struct{}, log *slog.Logger) {
	tick := time.NewTicker(saveOutputEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		text, total, news := out.End(r.cfg.Redact)
		if !news {
			continue
		}
		r.saveOutput(ctx, j, text, total, log)
	}
}

// saveOutput writes a job's output so far to the store, and tells watchers that there is more.
func (r *Runner) saveOutput(ctx context.Context, j sessions.Job, text string, total int64, log *slog.Logger) {
	if err := r.cfg.Store.NoteOutput(ctx, j.ID, text, total); err != nil {
		if ctx.Err() == nil {
			log.Warn("what a job prints cannot be noted now", slog.Any("error", err))
		}
		return
	}
	r.cfg.Bus.Emit(bus.Event{Type: bus.JobPrinted, Session: j.Session, Turn: j.Turn, News: &bus.News{ID: j.ID}})
}

// failedJob returns a job's record with the state "failed" and the reason.
func failedJob(j sessions.Job, why string) sessions.Job {
	j.State, j.Detail, j.Ended = sessions.JobFailed, why, time.Now()
	return j
}

// failedWithError returns a job's record with the state "failed" and what an error for the model says.
func failedWithError(j sessions.Job, err error) sessions.Job {
	if known, ok := errors.AsType[*tools.Error](err); ok {
		return failedJob(j, known.Message)
	}
	return failedJob(j, err.Error())
}

// withCommandEnd returns a job's record with the state in which its command ended.
func withCommandEnd(j sessions.Job, result sandbox.Result, err error, took time.Duration) sessions.Job {
	j.Ended = time.Now()
	switch {
	case errors.Is(err, errStopped):
		j.State, j.Detail = sessions.JobStopped, "it was stopped, along with everything it had started"
	case errors.Is(err, errForgotten):
		j.State, j.Stop = sessions.JobStopped, causeForgotten
	case errors.Is(err, errDrained):
		j.State, j.Detail = sessions.JobLost, "the process that ran it was shut down"
	case errors.Is(err, bus.ErrFenced), errors.Is(err, bus.ErrClosed):
		j.State, j.Detail = sessions.JobLost, "the process that ran it was cut off from the others"
	case err != nil:
		return failedWithError(j, sandbox.ErrorForModel(err))
	case result.Killed == "":
		j.State, j.ExitCode = sessions.JobExited, &result.ExitCode
	case result.Killed == sandbox.Timeout:
		j.State, j.Detail = sessions.JobKilled, "it wasn't done after "+took.Round(time.Second).String()
	case result.Killed == sandbox.Lease, result.Killed == sandbox.Cancelled:
		j.State, j.Detail = sessions.JobLost, result.Detail
	default:
		j.State, j.Detail = sessions.JobKilled, result.Detail
	}
	return j
}

// end records the end of a job, and reports it to the job's session, unless the job was erased or another process
// has reported it as lost.
func (r *Runner) end(running context.Context, j sessions.Job, log *slog.Logger) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(running))
	defer cancel()
	defer context.AfterFunc(running, func() { time.AfterFunc(endGrace, cancel) })()
	r.cfg.Point("job:ended")
	var ours bool
	err := r.retryUntilDone(ctx, log, func() (err error) {
		j.Told = j.Stop == causeForgotten
		ours, err = r.cfg.Store.EndJob(ctx, j)
		return err
	})
	if err != nil {
		log.Error("the end of a job could not be recorded; it will be told as lost", slog.Any("error", err))
		return
	}
	log.Info("a job has ended", slog.String("state", j.State), slog.Duration("took", j.Ended.Sub(j.Started)), slog.Int64("bytes", j.Printed))
	if !ours {
		return // the job was erased, or another process has reported it as lost
	}
	r.cfg.Point("job:recorded")
	r.tellWatchers(j)
	r.audit(ctx, j, log)
	r.tellEnd(ctx, j.ID, log)
}

// retryUntilDone calls fn until it returns nil or ctx ends.
func (r *Runner) retryUntilDone(ctx context.Context, log *slog.Logger, fn func() error) error {
	const longest = 2 * time.Second
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, longest) {
		err := fn()
		if err == nil {
			return nil
		}
		log.Warn("the end of a job cannot be told now; trying again", slog.Any("error", err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// audit records in the audit that a job has ended.
func (r *Runner) audit(ctx context.Context, j sessions.Job, log *slog.Logger) {
	if r.cfg.Audit == nil {
		return
	}
	err := r.cfg.Audit(ctx, sessions.AuditRecord{
		At: j.Ended, Kind: sessions.AuditJob, By: j.Person, Agent: j.Agent, Session: j.Session, Turn: j.Turn, Call: j.Call, Tool: j.Tool,
		Result: j.State, ExitCode: j.ExitCode, Bytes: j.Printed, Elapsed: j.Ended.Sub(j.Started).Milliseconds(), Detail: j.ID,
	})
	if err != nil {
		log.Error("the end of a job is not in the audit", slog.Any("error", err))
	}
}
