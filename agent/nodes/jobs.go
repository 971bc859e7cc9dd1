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

// Jobs gives jobs to the nodes of a Service. A job is a call that no turn waits for, and that the node may run for as
// long as it takes.
type Jobs struct{ Service *Service }

const (
	// maxJobDelay is how long after its start a job may be sent to its node. After that the node doesn't get it
	// anymore, because nobody expects it.
	maxJobDelay = time.Minute
	// jobOutcomeGrace is how long to wait for a job's outcome after its time is over: its node may be away, and still
	// have the outcome.
	jobOutcomeGrace = 24 * time.Hour
	// jobRecheckEvery is how often the waiter of a running job checks whether it has missed an event.
	jobRecheckEvery = 15 * time.Second
)

// jobCallID returns the id of the call that runs a job.
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
	a := &jobAttempt{attempt: attempt{Service: s, id: jobCallID(j), requestedNode: j.Node, allowedNode: j.Node}, job: j}
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
	out.Node, out.Trusted = j.Node, a.isServersOutcome(out) || s.trusts(ctx, j.Node)
	return out, err // not counted, because calls that take hours say nothing about the state of nodes
}

// A jobAttempt is one attempt of this process to run a job, or to wait for it.
type jobAttempt struct {
	attempt
	job nodes.Job
}

// giveJob records the job as a call, unless it is known, with the time when the job was started. If that is too long
// ago, the call is withdrawn at once, so a process that stood still after it recorded the job finds it ended.
func (a *jobAttempt) giveJob(ctx context.Context) (err error) {
	a.call, err = a.cfg.Calls.Call(ctx, a.id)
	if err == nil {
		return nil
	} // if the record can't be read, giveJob writes it unless it exists
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
			a.endJob(ctx, tools.Errorf(tools.Cancelled, textStopped))
		case unsent && time.Since(a.call.MadeAt) > maxJobDelay:
			a.endJob(ctx, tools.Errorf(tools.NodeAway, textJobLate, a.job.Node))
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
		if !a.hasEnded() && (a.isRevoked(ctx, a.job.Node) || time.Since(a.job.Started) > a.job.Limit+jobOutcomeGrace) {
			return nodes.Outcome{}, nodes.ErrJobLost
		}
	}
	return decodeOutcome(a.call), nil
}

// pause waits until there may be news about the job. Its error is ctx's.
func (a *jobAttempt) pause(ctx context.Context, stop <-chan struct{}, unsent bool) error {
	wait := jobRecheckEvery
	if isClosed(stop) { // if the job isn't canceled by now, the store has failed
		unsent, stop = unsent || !a.call.Cancelled, nil
	}
	if unsent {
		wait = recheckEvery
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

// endJob ends the job with that outcome if it was never sent to its node, and otherwise tells the node to end it.
func (a *jobAttempt) endJob(ctx context.Context, why *tools.Error) {
	raw, err := plainjson.Marshal(nodes.Outcome{Status: nodes.NotRun, Error: why})
	if err != nil { // texts always marshal
		panic(err)
	}
	if now, err := a.cfg.Calls.Cancel(ctx, a.id, raw, time.Now()); err == nil {
		a.call = now
	} // else the next time, if it is not erased
}
