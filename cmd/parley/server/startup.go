package server

import (
	"context"
	"sync"
)

// startup is the work that begins while the server is still being opened, because it takes longer than opening:
// finding a sandbox, and the first requests to the models' servers.
type startup struct {
	begin   func(do func(context.Context)) // calls do in a goroutine, which Close waits for
	end     context.CancelFunc
	running sync.WaitGroup
}

// newStartup returns a startup; all its work ends when ctx is done.
func newStartup(ctx context.Context) *startup {
	ctx, end := context.WithCancel(ctx)
	e := &startup{end: end}
	e.begin = func(do func(context.Context)) { e.running.Go(func() { do(ctx) }) }
	return e
}

// Close cancels the work that has not ended by itself, and waits for it.
func (e *startup) Close() error {
	e.end()
	e.running.Wait()
	return nil
}
