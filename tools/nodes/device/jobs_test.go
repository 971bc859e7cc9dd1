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

// jobTool returns a nodes.JobTool that waits like a gate, and reports progress.
func jobTool(g *gate) tools.Tool {
	return tools.New(tools.Spec{Name: nodes.JobTool, Effect: tools.Once, Touches: tools.Touches(func(a nodes.JobArgs) tools.Touch {
		return tools.Touch{Subject: tools.ShellLine(a.Command), Reads: tools.AnyFiles{}, Writes: tools.AnyFiles{}, Outward: tools.NothingOutward{}}
	})}, func(ctx context.Context, call tools.Call, _ nodes.JobArgs) (any, error) {
		call.Progress("it has begun")
		return g.run(ctx, call)
	})
}

func jobFrame(id string) wire.Frame {
	f := callFrame(id, nodes.JobTool, `{"job":"x","command":"make"}`)
	f.Timeout = time.Hour.Milliseconds()
	return f
}

// Jobs run in addition to all other calls, and take no call's place.
func TestJobsRunBesideCalls(t *testing.T) {
	t.Parallel()
	f, jobs, calls := newFakeServer(t), newGate(), newGate()
	f.run(t.TempDir(), func(n *device.Node) { n.Job = jobTool(jobs) }, tool("work", tools.Once, calls.run))
	c := f.link()
	for i := range 40 {
		sendFrame(t, c, jobFrame(fmt.Sprint("job", i)))
	}
	for range 8 { // more than may run at once
		out := nextFrame(t, c, wire.Result)
		wantError(t, *out.Outcome, nodes.NotRun, tools.ExecutionFailed)
	}
	sendFrame(t, c, jobFrame("job0")) // it runs
	for i := range 8 {
		sendFrame(t, c, callFrame(fmt.Sprint(i), "work", `{}`))
	}
	for range 8 {
		<-calls.entered
	}
	close(calls.open)
	for range 8 {
		nextFrame(t, c, wire.Result)
	}
	sendFrame(t, c, wire.Frame{Type: wire.Cancel, ID: "job0"})
	wantError(t, waitResult(t, c, "job0"), nodes.Failed, tools.Cancelled)
	if n := jobs.runs.Load(); n != 32 {
		t.Errorf("%d jobs have run", n)
	}
}

// At each link the server learns which jobs run, so that it can end those that it doesn't know. A node that was removed
// ends its jobs, and a node that restarts doesn't run them again.
func TestJobsOverLinks(t *testing.T) {
	t.Parallel()
	f, g, dir := newFakeServer(t), newGate(), t.TempDir()
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
	sendFrame(t, c, jobFrame("1"))
	<-g.entered
	for range 2 {
		report := readFrame(t, c)
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
	wantError(t, waitResult(t, c, "1"), nodes.Failed, tools.Cancelled)
	sendFrame(t, c, wire.Frame{Type: wire.Ack, ID: "1"})
	sendFrame(t, c, jobFrame("2"))
	<-g.entered
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	f.run(dir, func(n *device.Node) { n.Job = jobTool(g) })
	c = f.link()
	wantError(t, waitResult(t, c, "2"), nodes.Failed, tools.Cancelled)
	sendFrame(t, c, jobFrame("2"))
	wantError(t, waitResult(t, c, "2"), nodes.Failed, tools.Cancelled)
	if n := g.runs.Load(); n != 2 {
		t.Errorf("%d jobs have run", n)
	}
}

// readFrame returns the next frame.
func readFrame(t *testing.T, c *wire.Conn) wire.Frame {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	f, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A rule that denies a command also denies it as a job.
func TestRulesForJobs(t *testing.T) {
	t.Parallel()
	f, g := newFakeServer(t), newGate()
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
	sendFrame(t, c, jobFrame("1"))
	wantError(t, waitResult(t, c, "1"), nodes.NotRun, tools.PermissionDenied)
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
	f := newFakeServer(t)
	f.run(t.TempDir(), nil, tool("exec_shell", tools.Once, newGate().run))
	c := f.link()
	sendFrame(t, c, jobFrame("1"))
	wantError(t, waitResult(t, c, "1"), nodes.NotRun, tools.NotFound)
}
