package server

import (
	"context"
	"sync"

	"parley/agent/metrics"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/config"
)

// A part is a row in the list of everything that a server consists of. The part itself is a type of its own, which is
// made from what it needs and owns its state. This is its life:
//
//  1. It is made, and then meets the others if it is a host. That opens nothing, starts nothing and makes no
//     request.
//  2. Load, in the order of the list: it reads and checks what it needs. If one part fails, the server does not
//     start.
//  3. Run, if the row says so for this process: all parts at once. A part must not expect anything of another
//     part's Run except what the stages of the stop promise. A part with nothing left to do returns nil.
//  4. Reload, whenever the operator changes the settings, Clear, whenever somebody's words are erased, and the
//     questions about its state: at any time after Load.
//  5. The stop, when the process is told to end, or as soon as a Run returns an error. The stages end one after
//     another, in their order: the ctx of a stage's Runs is done once all Runs of the stages before have returned.
//     Each Run must finish its work and return within its own time limit. The last stage is an exception: it is told
//     to end before all others.
//  6. Close, in the reverse order of the list, once nothing runs; also after a Load that has failed.
//
// A process may die at any of these points before any Run or Close has ended: whatever must survive is durable by
// then, and Load and Run of the next start continue from there.
type part struct {
	name string
	ends stage // the stage in which its Run ends
	runs bool  // whether its Run is called in this process
	is   any   // the part itself, which implements some of the interfaces below
}

// These are the interfaces that parts may implement.
type (
	// A loader reads and checks what it needs before anything runs.
	loader interface {
		Load(ctx context.Context) error
	}
	// A runner works until ctx is done. An error means that the server cannot continue.
	runner interface {
		Run(ctx context.Context) error
	}
	// A reloader follows the settings. Reload checks the next ones, and returns a function that applies them: if
	// any part cannot accept them, all parts keep the old ones.
	reloader interface {
		Reload(next *config.Config) (apply func(), err error)
	}
	// A forgetter holds what people have said in memory. Clear removes it, because somebody's words were erased.
	forgetter interface {
		Clear()
	}
	// A routed part serves requests of the API.
	routed interface {
		Routes() []exchange.Route
	}
	// A measured part has figures for the metrics, which are read at each scrape.
	measured interface {
		Gauges() []metrics.Gauge
	}
	// A checked part knows whether this process is ready to serve. Ready returns, by the name of each check, why
	// the process is not ready; nil if it is. Anybody may read that, so it gives no details.
	checked interface {
		Ready(ctx context.Context) map[string]error
	}
	// A host looks for the interfaces that other parts implement. It meets all of them once, when all are made.
	host interface {
		meet(all []part)
	}
	// A closer has something open until Close.
	closer interface {
		Close() error
	}
)

// having returns those parts that implement A, in the order of the list.
func having[A any](parts []part) (able []A) {
	for _, p := range parts {
		if a, ok := p.is.(A); ok {
			able = append(able, a)
		}
	}
	return able
}

// A running is a part that only runs.
type running func(ctx context.Context) error

// Run implements runner.
func (r running) Run(ctx context.Context) error { return r(ctx) }

// A stage is a step of the stop. Its parts end at the same time, after the parts of all earlier stages.
type stage int

// These are the stages, in their order.
const (
	listening  stage = iota // parts that accept requests: HTTP and the home's socket
	receiving               // parts that receive from the platforms
	answering               // parts that finish what was received: turns, and what a turn waits for
	background              // parts that run what turns have left running
	sending                 // parts that send what all of these have said
	upkeep                  // parts that take care of the data
	rewriting               // parts that rewrite databases after erasures
	beside                  // parts that only read: told to end first, and waited for last, because a disk may delay them
	stageCount
)

// runParts runs parts until ctx is done or one of them cannot continue, whose error it returns. Then it calls
// stopping, and ends the parts stage by stage. It closes nothing.
func runParts(ctx context.Context, parts []part, stopping func()) error {
	failed := make(chan error, len(parts))
	var (
		during [stageCount]context.Context
		end    [stageCount]context.CancelFunc
		ended  [stageCount]sync.WaitGroup
	)
	for i := range stageCount {
		during[i], end[i] = context.WithCancel(context.WithoutCancel(ctx))
		defer end[i]()
	}
	for _, p := range parts {
		r, ok := p.is.(runner)
		if !ok || !p.runs {
			continue
		}
		ended[p.ends].Go(func() {
			if err := r.Run(during[p.ends]); err != nil {
				failed <- err
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	stopping()
	end[beside]()
	for i := range stageCount {
		end[i]()
		ended[i].Wait()
	}
	return err
}
