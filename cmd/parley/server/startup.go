package server

import (
	"context"
	"sync"
)

// startup is the work that begins while the server is still being opened, because it takes longer than opening:
// finding a sandbox, and the first requests to the models' servers.
type startup struct {
	begin func(do func(context.Context)) // does something while the server is being opened
	end   context.CancelFunc
	all   sync.WaitGroup
}

// newStartup makes a startup; all its work ends when ctx is done.
func newStartup(ctx context.Context) *startup {
	ctx, end := context.WithCancel(ctx)
	e := &startup{end: end}
	e.begin = func(do func(context.Context)) { e.all.Go(func() { do(ctx) }) }
	return e
}

// Close ends the work that has not ended by itself.
func (e *startup) Close() error {
	e.end()
	e.all.Wait()
	return nil
}
