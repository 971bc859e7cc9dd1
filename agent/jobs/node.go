package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"parley/sessions"
	"parley/tools"
	"parley/tools/jobs"
	"parley/tools/nodes"
	"parley/tools/sandbox"
	"parley/tools/shell"
)

// A nodeRoute is the part of a route about the job's node and command. A process that takes over the job's hold needs
// it, because the node may not have been given the job yet.
type nodeRoute struct {
	Node      string `json:"node,omitempty"`
	Ordered   string `json:"command,omitempty"` // as it was ordered
	Approved  bool   `json:"approved,omitempty"`
	WritesAll bool   `json:"writes_all,omitempty"`
}

// routeOf returns the route of a job. If it can't be read, it names no node.
func routeOf(j sessions.Job) (to route) {
	if json.Unmarshal(j.Route, &to) != nil {
		return route{}
	}
	return to
}

// StartOnNode is a nodes.Starter: it starts a job that runs on a node.
func (r *Runner) StartOnNode(ctx context.Context, node string, call tools.Call, command string, limit time.Duration) (any, error) {
	return r.start(ctx, call, order{shell.Order{Line: command, Timeout: limit}, node}, r.cfg.ReadyOnNodes, func() (runFunc, error) {
		if err := r.cfg.Nodes.CheckJob(ctx, node, call); err != nil {
			return nil, err
		}
		return func(ctx, held context.Context, j sessions.Job, _ Settings) { r.followOnNode(ctx, held, j) }, nil
	})
}

// jobOnNode returns a job in the form that a node is given.
func jobOnNode(j sessions.Job) nodes.Job {
	to := routeOf(j)
	return nodes.Job{
		JobArgs: nodes.JobArgs{ID: j.ID, Command: to.Ordered, WritesAll: to.WritesAll}, Node: to.Node, Started: j.Started, Limit: j.Deadline.Sub(j.Started),
		Session: j.Session, Person: j.Person, Agent: j.Agent, Turn: j.Turn, Approved: to.Approved,
	}
}

// followOnNode gives a job to its node unless that was done before, waits until it has ended there, and reports the end
// to its session. If held ends, the job continues, and the process that gets its hold next waits for it. If ctx ends
// before held, the node is told to end the job.
func (r *Runner) followOnNode(ctx, held context.Context, j sessions.Job) {
	there := jobOnNode(j)
	log := r.cfg.Log.With(slog.String("job", j.ID), slog.String("session", j.Session), slog.String("person", j.Person), slog.String("node", there.Node))
	log.Info("a job on a node is followed")
	out, err := r.cfg.Nodes.RunJob(held, there, ctx.Done(), func(report nodes.JobReport) {
		j.Output, j.Printed = r.cfg.Redact(fromWholeLine(report)), report.Printed
		r.saveOutput(held, j, j.Output, j.Printed, log)
	})
	switch {
	case held.Err() != nil:
		return
	case errors.Is(context.Cause(ctx), errForgotten):
		r.cfg.Nodes.DropJob(there)
		return
	case errors.Is(err, nodes.ErrJobLost):
		j.State, j.Detail, j.Ended = sessions.JobLost, textNoAnswer, time.Now()
	case err != nil:
		r.cfg.Nodes.DropJob(there) // its conversation may have been erased
		j = failedWithError(j, err)
	default:
		j = r.withNodeEnd(j, out, ctx.Err() != nil || j.Stop != "")
	}
	r.end(held, j, log)
}

// fromWholeLine returns the part of a job's output that a report shows, from the first whole line: half a word could be
// half a secret, which would not be recognized.
func fromWholeLine(report nodes.JobReport) string {
	if int64(len(report.Output)) >= report.Printed {
		return report.Output
	}
	_, whole, _ := strings.Cut(report.Output, "\n")
	return whole
}

// withNodeEnd returns a job's record with the state in which it ended on its node. The node's own words go only to the
// output, because an attacker on the node may have written them.
func (r *Runner) withNodeEnd(j sessions.Job, out nodes.Outcome, stopped bool) sessions.Job {
	j.Ended = time.Now()
	var end nodes.JobEnd
	switch {
	case out.Status == nodes.Done && json.Unmarshal(out.Content, &end) == nil && end.Printed >= 0:
		j.Output, j.Printed = jobs.EndOf(strings.ToValidUTF8(end.Output, "\uFFFD"), end.Printed, r.cfg.Redact), end.Printed
		if end.Killed == "" {
			j.State, j.ExitCode = sessions.JobExited, &end.ExitCode
			return j
		}
		j.State, j.Detail = sessions.JobKilled, nodeKillText(end.Killed)
		return j
	case out.Status == nodes.Done:
		return failedJob(j, textBadNode)
	case out.Error == nil:
		out.Error = &tools.Error{}
	}
	if !out.Trusted && out.Error.Message != "" {
		j.Output += r.cfg.Redact(textNodeSaid + out.Error.Message)
	}
	switch {
	case out.Status == nodes.Unknown:
		j.State, j.Detail = sessions.JobLost, textCutOffThere
	case out.Error.Code == tools.Cancelled && stopped:
		j.State, j.Detail = sessions.JobStopped, "it was stopped, along with everything it had started"
	case out.Error.Code == tools.Cancelled:
		j.State, j.Detail = sessions.JobLost, textNodeStopped
	case out.Error.Code == tools.NodeAway:
		return failedJob(j, textNodeAway)
	case out.Error.Code == tools.PermissionDenied:
		return failedJob(j, textNodeForbids)
	default:
		return failedJob(j, textNodeCouldNot)
	}
	return j
}

// nodeKillText says why a node has ended a job.
func nodeKillText(reason string) string {
	switch sandbox.Reason(reason) {
	case sandbox.Timeout:
		return "it wasn't done in time"
	case sandbox.Memory:
		return "it used too much memory"
	case sandbox.Processes:
		return "it started too many processes"
	case sandbox.Disk:
		return "it used too much disk space"
	case sandbox.Lease, sandbox.Cancelled:
	}
	return textCutOffThere
}
