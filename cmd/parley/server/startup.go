package server

import (
	"context"
	"sync"
)

// startup is what begins while the server is still being opened, because it takes longer than the rest of
// that: finding a sandbox, and the first requests to the servers of models.
type startup struct {
	begin func(do func(context.Context)) // does something beside the opening
	end   context.CancelFunc
	all   sync.WaitGroup
}

// newStartup makes a startup, all of which ends with ctx.
func newStartup(ctx context.Context) *startup {
	ctx, end := context.WithCancel(ctx)
	e := &startup{end: end}
	e.begin = func(do func(context.Context)) { e.all.Go(func() { do(ctx) }) }
	return e
}

// Close ends what has not ended by itself.
func (e *startup) Close() error {
	e.end()
	e.all.Wait()
	return nil
}
