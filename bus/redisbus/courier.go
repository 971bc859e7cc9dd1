package redisbus

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Between attempts at what failed.
const (
	shortRetry = 20 * time.Millisecond
	longRetry  = 250 * time.Millisecond
)

// jitter is between half of d and d, so that those who wait do not come back at once.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// A backoff is how long to wait before the next attempt; the zero value is ready.
type backoff time.Duration

func (b *backoff) next() time.Duration {
	*b = backoff(min(max(2*time.Duration(*b), shortRetry), longRetry))
	return jitter(time.Duration(*b))
}

// How calls are gathered: few connections with much on each cost less than many
// with little, for both sides.
const (
	couriers   = 3
	batchCalls = 64
	batchBytes = 512 << 10
	queueCalls = 1024
)

// A courier carries calls of scripts to the server and their replies back.
type courier struct {
	client  *redis.Client
	library library
	health  *health
	queue   chan *call
	stopped chan struct{}
	work    sync.WaitGroup
}

// A call is one run of a script. Its buffers belong to the courier until it is done.
type call struct {
	script script
	keys   []string
	args   []any
	size   int // of what is large in args, about

	taken atomic.Bool // by the courier, or back by a caller who waits no more
	done  chan struct{}
	reply any
	err   error
}

func newCourier(client *redis.Client, l library, h *health) *courier {
	return &courier{client: client, library: l, health: h, queue: make(chan *call, queueCalls), stopped: make(chan struct{})}
}

func (c *courier) start() {
	for range couriers {
		c.work.Go(c.carry)
	}
}

// stop ends the courier; calls that are under way end first.
func (c *courier) stop() {
	close(c.stopped)
	c.work.Wait()
}

var errStopped = errors.New("courier is stopped")

// grace is for how long a caller who wants to go waits for an answer that is
// under way: better to know what became of it.
const grace = 100 * time.Millisecond

// run runs a script. Soon after ctx has ended it returns; what it asked for may
// be done all the same, then or later.
func (c *courier) run(ctx context.Context, s script, keys []string, args ...any) (reply, error) {
	return c.send(ctx, &call{script: s, keys: keys, args: args})
}

func (c *courier) send(ctx context.Context, x *call) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	x.done = make(chan struct{})
	select {
	case c.queue <- x:
	case <-ctx.Done():
		return reply{}, notSent{ctx.Err()}
	case <-c.stopped:
		return reply{}, notSent{errStopped}
	}
	select {
	case <-x.done:
		return reply{x.reply}, x.err
	case <-ctx.Done():
	case <-c.stopped: // which waits for what is under way
	}
	if x.taken.CompareAndSwap(false, true) {
		return reply{}, notSent{cmp.Or(ctx.Err(), errStopped)}
	}
	select {
	case <-x.done:
		return reply{x.reply}, x.err
	case <-time.After(grace):
		return reply{}, cmp.Or(ctx.Err(), errStopped)
	}
}

// carry takes what has gathered, sends it, and hands out the replies.
func (c *courier) carry() {
	for {
		select {
		case x := <-c.queue:
			if batch := c.gather(x); len(batch) > 0 {
				c.deliver(batch)
			}
		case <-c.stopped:
			return
		}
	}
}

func (c *courier) gather(x *call) (batch []*call) {
	for size := 0; ; {
		if x.taken.CompareAndSwap(false, true) {
			batch = append(batch, x)
			size += x.size
		}
		if len(batch) == batchCalls || size > batchBytes {
			return batch
		}
		select {
		case x = <-c.queue:
		default:
			return batch
		}
	}
}

// deliver runs without a context: once a batch is on its way, it is of no use
// to anybody not to know what became of it. The client's timeouts bound it.
func (c *courier) deliver(batch []*call) {
	ctx := context.Background()
	commands := make([]*redis.Cmd, len(batch))
	if len(batch) == 1 {
		x := batch[0]
		commands[0] = c.library[x.script].EvalSha(ctx, c.client, x.keys, x.args...)
	} else {
		pipe := c.client.Pipeline()
		for i, x := range batch {
			commands[i] = c.library[x.script].EvalSha(ctx, pipe, x.keys, x.args...)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
	for i, x := range batch {
		x.reply, x.err = commands[i].Result()
		if redis.HasErrorPrefix(x.err, "NOSCRIPT") {
			// The server has forgotten the script, so it did not run.
			x.reply, x.err = c.library[x.script].Eval(ctx, c.client, x.keys, x.args...).Result()
		}
		c.health.saw(x.err)
		close(x.done)
	}
}

// notSent is the error of a call that the server never saw.
type notSent struct{ error }

// Unwrap is for package errors.
func (e notSent) Unwrap() error { return e.error }

// mayHaveRun says whether a call that failed with err may have been carried out.
func mayHaveRun(err error) bool {
	if _, ok := errors.AsType[notSent](err); ok {
		return false
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return false // the server says that it refused
	}
	op, ok := errors.AsType[*net.OpError](err)
	return !ok || op.Op != "dial"
}

// calm is for how long nothing may fail before Redis is said to be well: what
// refuses to store may go on to answer all else.
const calm = 5 * time.Second

// health says once that Redis fails, and once that it is back.
type health struct {
	log    *slog.Logger
	ill    atomic.Bool
	mu     sync.Mutex
	fell   time.Time
	failed time.Time // the last time
}

func (h *health) saw(err error) {
	if err == nil && !h.ill.Load() {
		return // nothing new
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if err != nil {
		h.failed = now
	}
	switch ill := h.ill.Load(); {
	case ill && now.Sub(h.failed) >= calm:
		h.ill.Store(false)
		h.log.Info("redis answers again", slog.Duration("after", h.failed.Sub(h.fell)))
	case !ill && err != nil:
		h.ill.Store(true)
		h.fell = now
		if refused(err) {
			h.log.Error("redis refuses; everything is tried again", slog.Any("error", err))
		} else {
			h.log.Error("redis does not answer; everything is tried again", slog.Any("error", err))
		}
	}
}
