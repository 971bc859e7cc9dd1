package nodes

import (
	"context"
	"time"

	stored "parley/sessions/nodes"
	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/plainjson"
)

var _ nodes.JobBackend = Jobs{}

// Jobs gives jobs to the nodes of a Service. A job is a call like any other, but nobody's turn waits for it, and the node runs
// it as long as it takes.
type Jobs struct{ Service *Service }

const (
	// startWithin is how long a node may take until it is sent a job. After that it doesn't get it anymore: nobody expects it.
	startWithin = time.Minute
	// jobLate is how long after its time a job is waited for: its node may be away, and still have its outcome.
	jobLate = 24 * time.Hour
	// jobLookAgain is how often whoever waits for a job that runs looks whether it has missed the bell.
	jobLookAgain = 15 * time.Second
)

// jobCallID returns the id of the call that is a job.
func jobCallID(j nodes.Job) string { return CallID(j.Session, "job/"+j.ID) }

// CheckJob implements nodes.JobBackend.
func (b Jobs) CheckJob(ctx context.Context, node string, call tools.Call) error {
	s := b.Service
	if why, err := s.cfg.Ready(ctx); err != nil {
		return s.storeFailed(err)
	} else if why != "" {
		return tools.Errorf(tools.ExecutionFailed, textNotReady, why)
	}
	name, _, err := s.choose(ctx, node, nodes.Shell, call)
	if err != nil {
		return err
	}
	n, err := s.Find(ctx, name)
	switch {
	case err != nil:
		return s.storeFailed(err)
	case !n.has(nodes.Jobs), n.IsKeyless():
		return tools.Errorf(tools.ExecutionFailed, textTooOld, name)
	}
	return nil
}

// TrustsJobs implements nodes.JobBackend.
func (b Jobs) TrustsJobs(ctx context.Context, node string) bool { return b.Service.trusts(ctx, node) }

// DropJob implements nodes.JobBackend.
func (b Jobs) DropJob(j nodes.Job) { b.Service.emit(callErased, j.Node, jobCallID(j), "") }

// RunJob implements nodes.JobBackend.
func (b Jobs) RunJob(ctx context.Context, j nodes.Job, stop <-chan struct{}, report func(nodes.JobReport)) (nodes.Outcome, error) {
	s := b.Service
	a := &jobAttempt{attempt: attempt{Service: s, id: jobCallID(j), asked: j.Node, node: j.Node}, job: j}
	a.waiter = s.waiting.add(a.id, func(text string) {
		if r, ok := nodes.ReadJobReport(text); ok {
			report(r)
		}
	})
	defer s.waiting.remove(a.id, a.waiter)
	if err := a.giveJob(ctx); err != nil {
		return nodes.Outcome{}, err
	}
	out, err := a.awaitJob(ctx, stop)
	out.Node, out.Trusted = j.Node, a.isOwn(out) || s.trusts(ctx, j.Node)
	return out, err // which isn't counted: calls that take hours would say nothing about how nodes do
}

// A jobAttempt waits in this process for a job.
type jobAttempt struct {
	attempt
	job nodes.Job
}

// giveJob records the job as a call, unless it is known. It counts as made when the job was started: if that is too long ago,
// the call is withdrawn at once, and whoever has recorded the job and stood still since finds it ended.
func (a *jobAttempt) giveJob(ctx context.Context) (err error) {
	a.call, err = a.cfg.Calls.Call(ctx, a.id)
	if err == nil {
		return nil
	} // if it can't be read, it is recorded unless it is known
	args, err := plainjson.Marshal(a.job.JobArgs)
	if err != nil { // texts and a boolean always marshal
		panic(err)
	}
	j := a.job
	return a.record(ctx, stored.Call{
		ID: a.id, Node: j.Node, Tool: nodes.JobTool, Session: j.Session, Person: j.Person, Agent: j.Agent, Turn: j.Turn, Args: args,
		Timeout: j.Limit, Approved: j.Approved, MadeAt: j.Started,
	})
}

// awaitJob waits for the end of the job.
func (a *jobAttempt) awaitJob(ctx context.Context, stop <-chan struct{}) (nodes.Outcome, error) {
	for !a.hasEnded() {
		unsent := a.call.SentAt.IsZero()
		switch {
		case a.call.Cancelled:
		case isClosed(stop) && ctx.Err() == nil:
			a.end(ctx, tools.Errorf(tools.Cancelled, textStopped))
		case unsent && time.Since(a.call.MadeAt) > startWithin:
			a.end(ctx, tools.Errorf(tools.NodeAway, textJobLate, a.job.Node))
		}
		if a.hasEnded() {
			break
		}
		if unsent || a.call.Cancelled {
			a.ring(a.call)
		}
		if err := a.pause(ctx, stop, unsent); err != nil {
			return nodes.Outcome{}, err
		}
		if err := a.reread(ctx); err != nil {
			return nodes.Outcome{}, err
		}
		if !a.hasEnded() && (a.isRevoked(ctx, a.job.Node) || time.Since(a.job.Started) > a.job.Limit+jobLate) {
			return nodes.Outcome{}, nodes.ErrJobLost
		}
	}
	return decode(a.call), nil
}

// pause waits until there may be something new. The error is that of ctx.
func (a *jobAttempt) pause(ctx context.Context, stop <-chan struct{}, unsent bool) error {
	wait := jobLookAgain
	if isClosed(stop) { // if it isn't canceled by now, the store has failed
		unsent, stop = unsent || !a.call.Cancelled, nil
	}
	if unsent {
		wait = lookAgain
	}
	again := time.NewTimer(wait)
	defer again.Stop()
	select {
	case <-a.waiter.bell:
	case <-again.C:
	case <-stop:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// end ends the job with that outcome if its node was never sent it, and has the node end it otherwise.
func (a *jobAttempt) end(ctx context.Context, why *tools.Error) {
	raw, err := plainjson.Marshal(nodes.Outcome{Status: nodes.NotRun, Error: why})
	if err != nil { // texts always marshal
		panic(err)
	}
	if now, err := a.cfg.Calls.Cancel(ctx, a.id, raw, time.Now()); err == nil {
		a.call = now
	} // else the next time, if it is not erased
}
