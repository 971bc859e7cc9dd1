//go:build linux

package device_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/nodes"
	"parley/tools/nodes/device"
	"parley/tools/nodes/wire"
)

// jobTool is a nodes.JobTool that runs as a gate does, and reports.
func jobTool(g *gate) tools.Tool {
	return tools.New(tools.Spec{Name: nodes.JobTool, Effect: tools.Once, Touches: tools.Touches(func(a nodes.JobArgs) tools.Touch {
		return tools.Touch{Subject: tools.ShellLine(a.Command), Reads: tools.AnyFiles{}, Writes: tools.AnyFiles{}, Outward: tools.Inside{}}
	})}, func(ctx context.Context, call tools.Call, _ nodes.JobArgs) (any, error) {
		call.Progress("it has begun")
		return g.run(ctx, call)
	})
}

func job(id string) wire.Frame {
	f := call(id, nodes.JobTool, `{"job":"x","command":"make"}`)
	f.Timeout = time.Hour.Milliseconds()
	return f
}

// Jobs run beside all other calls, and take the place of none.
func TestJobsRunBesideCalls(t *testing.T) {
	t.Parallel()
	f, jobs, calls := newFleet(t), newGate(), newGate()
	f.run(t.TempDir(), func(n *device.Node) { n.Job = jobTool(jobs) }, tool("work", tools.Once, calls.run))
	c := f.link()
	for i := range 40 {
		send(t, c, job(fmt.Sprint("job", i)))
	}
	for range 8 { // more than may run at once
		out := next(t, c, wire.Result)
		wantError(t, *out.Outcome, nodes.NotRun, tools.ExecutionFailed)
	}
	send(t, c, job("job0")) // it runs
	for i := range 8 {
		send(t, c, call(fmt.Sprint(i), "work", `{}`))
	}
	for range 8 {
		<-calls.entered
	}
	close(calls.open)
	for range 8 {
		next(t, c, wire.Result)
	}
	send(t, c, wire.Frame{Type: wire.Cancel, ID: "job0"})
	wantError(t, result(t, c, "job0"), nodes.Failed, tools.Cancelled)
	if n := jobs.runs.Load(); n != 32 {
		t.Errorf("%d jobs have run", n)
	}
}

// At each link the server hears which jobs run, so that it can have those ended that it doesn't know. A node that was removed
// ends its jobs, and one that begins anew doesn't run them again.
func TestJobsOverLinks(t *testing.T) {
	t.Parallel()
	f, g, dir := newFleet(t), newGate(), t.TempDir()
	ended := make(chan struct{}, 100)
	stop := f.run(dir, func(n *device.Node) {
		n.Job = jobTool(g)
		n.Point = func(name string) {
			if name == "device:ended" {
				ended <- struct{}{}
			}
		}
	})
	c := f.link()
	send(t, c, job("1"))
	<-g.entered
	for range 2 {
		report := read(t, c)
		if report.Type != wire.Progress || report.ID != "1" || report.Text != "it has begun" {
			t.Fatalf("got %+v", report)
		}
		c.Close()
		c = f.link()
	}
	f.refuse.Store(&wire.Refusal{Reason: wire.ReasonRevoked, Text: "it was removed"})
	c.Close()
	<-ended
	f.refuse.Store(nil)
	c = f.link()
	wantError(t, result(t, c, "1"), nodes.Failed, tools.Cancelled)
	send(t, c, wire.Frame{Type: wire.Ack, ID: "1"})
	send(t, c, job("2"))
	<-g.entered
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	f.run(dir, func(n *device.Node) { n.Job = jobTool(g) })
	c = f.link()
	wantError(t, result(t, c, "2"), nodes.Failed, tools.Cancelled)
	send(t, c, job("2"))
	wantError(t, result(t, c, "2"), nodes.Failed, tools.Cancelled)
	if n := g.runs.Load(); n != 2 {
		t.Errorf("%d jobs have run", n)
	}
}

// read returns the next frame.
func read(t *testing.T, c *wire.Conn) wire.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	f, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A job's command is denied by the rules that deny it as a command.
func TestRulesForJobs(t *testing.T) {
	t.Parallel()
	f, g := newFleet(t), newGate()
	close(g.open)
	var asked tools.Call
	f.run(t.TempDir(), func(n *device.Node) {
		n.Job = jobTool(g)
		n.Decide = func(_ context.Context, call tools.Call) tools.Verdict {
			asked = call
			return tools.Verdict{Decision: tools.Deny, Reason: "no"}
		}
	})
	c := f.link()
	send(t, c, job("1"))
	wantError(t, result(t, c, "1"), nodes.NotRun, tools.PermissionDenied)
	if asked.Name != nodes.Shell || string(asked.Args) != `{"command":"make"}` || asked.Touch().Subject != tools.Subject(tools.ShellLine("make")) {
		t.Errorf("it was asked about %s %s %v", asked.Name, asked.Args, asked.Touch().Subject)
	}
	if g.runs.Load() != 0 {
		t.Error("it has run")
	}
}

// A node without a sandbox, or of an older release, refuses a job.
func TestANodeWithoutJobs(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.run(t.TempDir(), nil, tool("exec_shell", tools.Once, newGate().run))
	c := f.link()
	send(t, c, job("1"))
	wantError(t, result(t, c, "1"), nodes.NotRun, tools.NotFound)
}
