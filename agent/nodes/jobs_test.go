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

// job is a job of the tests.
func job(id string) toolnodes.Job {
	return toolnodes.Job{
		JobArgs: toolnodes.JobArgs{ID: id, Command: "make"}, Node: "pi", Started: time.Now(), Limit: time.Hour,
		Session: session, Person: "telegram:42", Agent: "main", Turn: "t1", Approved: true,
	}
}

// follow has a process wait for a job, and returns where its outcome comes.
func (p *process) follow(ctx context.Context, j toolnodes.Job, stop <-chan struct{}, report func(toolnodes.JobReport)) <-chan called {
	came := make(chan called, 1)
	go func() {
		out, err := nodes.Jobs{Service: p.Service}.RunJob(ctx, j, stop, report)
		came <- called{out, err}
	}()
	return came
}

func nothing(toolnodes.JobReport) {}

// A startedJob is a job that runs on a device.
type startedJob struct {
	linked, follower *process // which has the device's link, and which waits for the job
	device           *device
	came             <-chan called
	stop             chan struct{}
}

// startJob starts a job that runs until it is ended.
func (f *fleet) startJob() *startedJob {
	f.t.Helper()
	j := &startedJob{linked: f.process(), follower: f.process(), stop: make(chan struct{})}
	j.device = j.linked.join("pi", tool("exec_shell", false))
	j.device.working(nil)
	j.device.link(j.linked)
	j.came = j.follower.follow(f.t.Context(), job("one"), j.stop, nothing)
	until(f.t, "the job runs", func() bool { calls, _ := j.device.ran(); return calls == 1 })
	return j
}

// working has a node run calls until it is told to end them, or let is closed.
func (d *device) working(let <-chan struct{}) {
	d.run = func(f wire.Frame, report func(string), cancelled <-chan struct{}) toolnodes.Outcome {
		report(toolnodes.JobReport{Output: "half", Printed: 4}.Text())
		select {
		case <-let:
			return ok(`{"output":"whole","printed":5,"exit_code":3}`)
		case <-cancelled:
			return toolnodes.Outcome{Status: toolnodes.Failed, Error: tools.Errorf(tools.Cancelled, "it was ended")}
		}
	}
}

// A process that waits for a job may end, and its node may go away: the next one gets the outcome, and the job is run once.
func TestAJobGoesOnWhoeverWaits(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		a, b := f.process(), f.process()
		d := a.join("pi", tool("exec_shell", false))
		let := make(chan struct{})
		d.working(let)
		d.link(a)
		ctx, end := context.WithCancel(t.Context())
		reports := make(chan toolnodes.JobReport, 10)
		first := b.follow(ctx, job("one"), nil, func(r toolnodes.JobReport) { reports <- r })
		if r := <-reports; r.Output != "half" || r.Printed != 4 {
			t.Errorf("it has reported %+v", r)
		}
		end()
		if got := <-first; !errors.Is(got.err, context.Canceled) {
			t.Errorf("who waits no more gets %+v", got)
		}
		d.leave()
		second := a.follow(t.Context(), job("one"), nil, nothing)
		close(let)
		until(t, "the device has the outcome", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.outcomes[only(d.runs)] != nil })
		d.link(b)
		wants(t, <-second, toolnodes.Done, `{"output":"whole","printed":5,"exit_code":3}`)
		if calls, most := d.ran(); calls != 1 || most != 1 {
			t.Errorf("%d calls were run, one of them %d times", calls, most)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, frame := range d.heard {
			var args toolnodes.JobArgs
			if frame.Type == wire.Call && (frame.Tool != toolnodes.JobTool || json.Unmarshal(frame.Args, &args) != nil || args.Command != "make" || !frame.Approved || frame.Timeout != time.Hour.Milliseconds()) {
				t.Errorf("the node was sent %+v", frame)
			}
		}
	})
}

// A job ends when somebody stops it, also in another process.
func TestAJobIsStopped(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		j := f.startJob()
		close(j.stop)
		wantsCode(t, <-j.came, tools.Cancelled)
	})
}

// The node is told to end a job whose conversation was erased: at once if it is here, and otherwise when it reports of the job
// over its next link.
func TestAJobOfAnErasedConversation(t *testing.T) {
	for name, away := range map[string]bool{"here": false, "away": true} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, f *fleet) {
				j := f.startJob()
				d := j.device
				if away {
					d.leave()
				}
				_, err := j.follower.store.EraseSession(t.Context(), session)
				must(t, err)
				close(j.stop)
				wantsCode(t, <-j.came, tools.Cancelled)
				nodes.Jobs{Service: j.follower.Service}.DropJob(job("one"))
				if away {
					d.link(j.linked)
					d.mu.Lock()
					id := only(d.runs)
					d.mu.Unlock()
					d.say(wire.Frame{Type: wire.Progress, ID: id})
				}
				until(t, "the node is told to end it", func() bool { return d.got(wire.Cancel) > 0 })
				until(t, "all is acknowledged", func() bool { return d.unacknowledged() == 0 })
			})
		})
	}
}

// A job that its node couldn't be sent in time is not started when the node comes back.
func TestAJobIsNotStartedLate(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		a := f.process()
		d := a.join("pi", tool("exec_shell", false))
		late := job("late")
		late.Started = time.Now().Add(-2 * time.Minute)
		got := <-a.follow(t.Context(), late, nil, nothing)
		wantsCode(t, got, tools.NodeAway)
		if got.out.Status != toolnodes.NotRun || !got.out.Trusted {
			t.Errorf("it ended as %+v", got.out)
		}
		d.link(a)
		if got = <-a.follow(t.Context(), late, nil, nothing); got.out.Status != toolnodes.NotRun {
			t.Errorf("again, it ended as %+v", got.out)
		}
		if calls, _ := d.ran(); calls != 0 {
			t.Errorf("%d calls were run", calls)
		}
	})
}

// Nobody waits any longer for the jobs of a node that was removed.
func TestAJobOfARemovedNode(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		a := f.process()
		d := a.join("pi", tool("exec_shell", false))
		d.working(nil)
		d.link(a)
		stop := make(chan struct{})
		came := a.follow(t.Context(), job("one"), stop, nothing)
		until(t, "it runs", func() bool { calls, _ := d.ran(); return calls == 1 })
		must(t, a.Revoke(t.Context(), "pi"))
		if got := <-came; !errors.Is(got.err, toolnodes.ErrJobLost) {
			t.Errorf("it ended as %+v, %v", got.out, got.err)
		}
	})
}

// Before a job is recorded it is clear whether its node can run it.
func TestWhetherANodeRunsJobs(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		a := f.process()
		old := a.join("old", tool("exec_shell", false))
		able := a.join("pi", tool("exec_shell", false))
		able.offer.Capabilities = []string{toolnodes.Jobs}
		jobs := nodes.Jobs{Service: a.Service}
		old.link(a)
		if err := jobs.CheckJob(t.Context(), "old", call(key(1))); err == nil || !strings.Contains(err.Error(), "too old") {
			t.Errorf("the old one: %v", err)
		}
		wantsCode(t, called{err: jobs.CheckJob(t.Context(), "pi", call(key(2)))}, tools.NodeAway)
		able.link(a)
		until(t, "it may run jobs", func() bool { return jobs.CheckJob(t.Context(), "pi", call(key(3))) == nil })
		other := call(key(4))
		other.Agent = "another"
		wantsCode(t, called{err: jobs.CheckJob(t.Context(), "pi", other)}, tools.NotFound)
	})
}
