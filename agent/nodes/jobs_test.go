package nodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/agent/nodes"
	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/wire"
)

// job returns a test job.
func job(id string) toolnodes.Job {
	return toolnodes.Job{
		JobArgs: toolnodes.JobArgs{ID: id, Command: "make"}, Node: "pi", Started: time.Now(), Limit: time.Hour,
		Session: testSession, Person: "telegram:42", Agent: "main", Turn: "t1", Approved: true,
	}
}

// waitForJob has a process wait for a job, and returns the channel of its outcome.
func (p *process) waitForJob(ctx context.Context, j toolnodes.Job, stop <-chan struct{}, report func(toolnodes.JobReport)) <-chan callResult {
	came := make(chan callResult, 1)
	go func() {
		out, err := nodes.Jobs{Service: p.Service}.RunJob(ctx, j, stop, report)
		came <- callResult{out, err}
	}()
	return came
}

func ignoreReport(toolnodes.JobReport) {}

// A startedJob is a job that runs on a device.
type startedJob struct {
	linked, follower *process // which has the device's link, and which waits for the job
	device           *device
	outcome          <-chan callResult
	stop             chan struct{}
}

// startJob starts a job that runs until it is ended.
func (f *fleet) startJob() *startedJob {
	f.t.Helper()
	j := &startedJob{linked: f.process(), follower: f.process(), stop: make(chan struct{})}
	j.device = j.linked.join("pi", tool("exec_shell", false))
	j.device.runUntilTold(nil)
	j.device.link(j.linked)
	j.outcome = j.follower.waitForJob(f.t.Context(), job("one"), j.stop, ignoreReport)
	waitUntil(f.t, "the job runs", func() bool { calls, _ := j.device.ran(); return calls == 1 })
	return j
}

// runUntilTold makes a node run calls until it is told to end them, or let is closed.
func (d *device) runUntilTold(let <-chan struct{}) {
	d.run = func(f wire.Frame, report func(string), cancelled <-chan struct{}) toolnodes.Outcome {
		report(toolnodes.JobReport{Output: "half", Printed: 4}.Text())
		select {
		case <-let:
			return doneOutcome(`{"output":"whole","printed":5,"exit_code":3}`)
		case <-cancelled:
			return toolnodes.Outcome{Status: toolnodes.Failed, Error: tools.Errorf(tools.Cancelled, "it was ended")}
		}
	}
}

// The process that waits for a job may end, and the job's node may go away: the next process gets the outcome, and the
// job runs once.
func TestAJobGoesOnWhoeverWaits(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		let := make(chan struct{})
		d.runUntilTold(let)
		d.link(a)
		ctx, end := context.WithCancel(t.Context())
		reports := make(chan toolnodes.JobReport, 10)
		first := b.waitForJob(ctx, job("one"), nil, func(r toolnodes.JobReport) { reports <- r })
		if r := <-reports; r.Output != "half" || r.Printed != 4 {
			t.Errorf("it has reported %+v", r)
		}
		end()
		if got := <-first; !errors.Is(got.err, context.Canceled) {
			t.Errorf("who waits no more gets %+v", got)
		}
		d.leave()
		second := a.waitForJob(t.Context(), job("one"), nil, ignoreReport)
		close(let)
		waitUntil(t, "the device has the outcome", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.outcomes[onlyKey(d.runs)] != nil })
		d.link(b)
		wantOutcome(t, <-second, toolnodes.Done, `{"output":"whole","printed":5,"exit_code":3}`)
		if calls, most := d.ran(); calls != 1 || most != 1 {
			t.Errorf("%d calls were run, one of them %d times", calls, most)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, frame := range d.received {
			var args toolnodes.JobArgs
			if frame.Type == wire.Call && (frame.Tool != toolnodes.JobTool || json.Unmarshal(frame.Args, &args) != nil || args.Command != "make" || !frame.Approved || frame.Timeout != time.Hour.Milliseconds()) {
				t.Errorf("the node was sent %+v", frame)
			}
		}
	})
}

// A job ends when somebody stops it, also in another process.
func TestAJobIsStopped(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		j := f.startJob()
		close(j.stop)
		wantCode(t, <-j.outcome, tools.Cancelled)
	})
}

// If a job's conversation is erased, the node is told to end the job: at once if it is here, and otherwise when it
// reports the job over its next link.
func TestAJobOfAnErasedConversation(t *testing.T) {
	for name, away := range map[string]bool{"here": false, "away": true} {
		t.Run(name, func(t *testing.T) {
			onHomeAndFleet(t, func(t *testing.T, f *fleet) {
				j := f.startJob()
				d := j.device
				if away {
					d.leave()
				}
				_, err := j.follower.store.EraseSession(t.Context(), testSession)
				must(t, err)
				close(j.stop)
				wantCode(t, <-j.outcome, tools.Cancelled)
				nodes.Jobs{Service: j.follower.Service}.DropJob(job("one"))
				if away {
					d.link(j.linked)
					d.mu.Lock()
					id := onlyKey(d.runs)
					d.mu.Unlock()
					d.send(wire.Frame{Type: wire.Progress, ID: id})
				}
				waitUntil(t, "the node is told to end it", func() bool { return d.countReceived(wire.Cancel) > 0 })
				waitUntil(t, "all is acknowledged", func() bool { return d.unacknowledged() == 0 })
			})
		})
	}
}

// A job that couldn't be sent to its node in time is not started when the node comes back.
func TestAJobIsNotStartedLate(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		d := a.join("pi", tool("exec_shell", false))
		late := job("late")
		late.Started = time.Now().Add(-2 * time.Minute)
		got := <-a.waitForJob(t.Context(), late, nil, ignoreReport)
		wantCode(t, got, tools.NodeAway)
		if got.out.Status != toolnodes.NotRun || !got.out.Trusted {
			t.Errorf("it ended as %+v", got.out)
		}
		d.link(a)
		if got = <-a.waitForJob(t.Context(), late, nil, ignoreReport); got.out.Status != toolnodes.NotRun {
			t.Errorf("again, it ended as %+v", got.out)
		}
		if calls, _ := d.ran(); calls != 0 {
			t.Errorf("%d calls were run", calls)
		}
	})
}

// Nobody waits any longer for the jobs of a node that was removed.
func TestAJobOfARemovedNode(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		d := a.join("pi", tool("exec_shell", false))
		d.runUntilTold(nil)
		d.link(a)
		stop := make(chan struct{})
		came := a.waitForJob(t.Context(), job("one"), stop, ignoreReport)
		waitUntil(t, "it runs", func() bool { calls, _ := d.ran(); return calls == 1 })
		must(t, a.Revoke(t.Context(), "pi"))
		if got := <-came; !errors.Is(got.err, toolnodes.ErrJobLost) {
			t.Errorf("it ended as %+v, %v", got.out, got.err)
		}
	})
}

// Whether a node can run a job is checked before the job is recorded.
func TestWhetherANodeRunsJobs(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		old := a.join("old", tool("exec_shell", false))
		able := a.join("pi", tool("exec_shell", false))
		able.offer.Capabilities = []string{toolnodes.Jobs}
		jobs := nodes.Jobs{Service: a.Service}
		old.link(a)
		if err := jobs.CheckJob(t.Context(), "old", toolCall(callKey(1))); err == nil || !strings.Contains(err.Error(), "too old") {
			t.Errorf("the old one: %v", err)
		}
		wantCode(t, callResult{err: jobs.CheckJob(t.Context(), "pi", toolCall(callKey(2)))}, tools.NodeAway)
		able.link(a)
		waitUntil(t, "it may run jobs", func() bool { return jobs.CheckJob(t.Context(), "pi", toolCall(callKey(3))) == nil })
		other := toolCall(callKey(4))
		other.Agent = "another"
		wantCode(t, callResult{err: jobs.CheckJob(t.Context(), "pi", other)}, tools.NotFound)
	})
}
