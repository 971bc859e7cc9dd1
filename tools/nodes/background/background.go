// Package background runs the jobs of a node: commands that go on after the calls that start them.
package background

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"parley/tools"
	"parley/tools/jobs"
	"parley/tools/nodes"
	"parley/tools/sandbox"
)

const (
	reportEvery = 5 * time.Second // how often the server hears what a job has printed, if there is something new
	// stillEvery is how often it hears of a job that prints nothing: it answers if it doesn't know the job.
	stillEvery = time.Minute
	maxID      = 32
	maxCommand = 120 << 10 // bytes
)

// Config connects the tool to the sandbox and the folder of the node.
type Config struct {
	Sandbox sandbox.Sandbox
	// Place returns where commands run, and Create makes a file there.
	Place  func(ctx context.Context, call tools.Call) (sandbox.Place, error)
	Create func(ctx context.Context, path string) (io.WriteCloser, error)
}

// New makes nodes.JobTool. A call of it runs a job to its end, and reports what it prints.
func New(c Config) tools.Tool {
	return tools.New(tools.Spec{
		Name: nodes.JobTool, Effect: tools.Once, Permission: tools.Shell,
		Touches: tools.Touches(func(a nodes.JobArgs) tools.Touch {
			return tools.Touch{Subject: tools.ShellLine(a.Command), Reads: tools.AnyFiles{}, Writes: tools.AnyFiles{}, Outward: tools.RunsProgram{Effect: "run what reaches the network"}}
		}),
	}, func(ctx context.Context, call tools.Call, args nodes.JobArgs) (any, error) {
		return c.run(ctx, call, args)
	})
}

// run runs a job.
func (c Config) run(ctx context.Context, call tools.Call, args nodes.JobArgs) (any, error) {
	switch {
	case args.ID == "" || len(args.ID) > maxID || strings.Trim(args.ID, "abcdefghijklmnopqrstuvwxyz0123456789") != "":
		return nil, tools.Errorf(tools.InvalidArgs, textNoID)
	case strings.TrimSpace(args.Command) == "" || strings.ContainsRune(args.Command, 0) || len(args.Command) > maxCommand:
		return nil, tools.Errorf(tools.InvalidArgs, textNoCommand, maxCommand)
	}
	place, err := c.Place(ctx, call)
	if err != nil {
		return nil, err
	}
	file, err := c.Create(ctx, jobs.File(args.ID))
	if err != nil {
		return nil, err
	}
	out := jobs.NewOutput(file)
	defer out.Close()
	command := place.Command("sh", "-c", `exec "$0" "$@" 2>&1`, "sh", "-c", args.Command) // both streams as one, in order
	command.WritableDir, command.WritesAll, command.Output = jobs.Folder(args.ID), args.WritesAll, out.Write
	over := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { report(call.Progress, out, over) })
	result, err := c.Sandbox.Run(ctx, command)
	close(over)
	beside.Wait()
	if err != nil {
		return nil, sandbox.ErrorForModel(err)
	}
	end := nodes.JobEnd{ExitCode: result.ExitCode, Killed: string(result.Killed)}
	end.Output, end.Printed, _ = out.Raw()
	return end, nil
}

// report reports at intervals what a job has printed so far, until over is closed.
func report(progress func(string), out *jobs.Output, over <-chan struct{}) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-over:
			return
		case now := <-tick.C:
			text, printed, news := out.Raw()
			if !news && now.Sub(last) < stillEvery {
				continue
			}
			last = now
			progress(nodes.JobReport{Output: text, Printed: printed}.Text())
		}
	}
}
