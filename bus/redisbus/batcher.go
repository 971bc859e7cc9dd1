package redisbus

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/redisbus/server"
)

// Calls are gathered into pipelines: few connections with many calls on each cost
// client and server less than many connections with few.
const (
	senderCount    = 3         // goroutines that each have one pipeline under way
	maxBatchCalls  = 64        // the most calls in one pipeline
	fullBatchBytes = 512 << 10 // a pipeline with more bytes than these takes no further call
	maxQueuedCalls = 1024      // how many calls may wait to be sent; later callers block
)

// A scriptBatcher gathers the Redis scripts that callers want to run into pipelines and returns
// each reply to its caller.
type scriptBatcher struct {
	client      *redis.Client
	scripts     scriptLibrary
	outages     *outageLog
	replication *replication
	queue       chan *call
	stopped     chan struct{}
	work        sync.WaitGroup
}

// A call is one run of a script. Its caller must not change keys and args until
// done is closed, even if it has stopped waiting.
type call struct {
	script script
	keys   []string
	args   []any
	size   int // approximate size of the large args, in bytes

	// decided is set either by the sender that takes the call, or by the caller who
	// withdraws it: whichever sets it first decides whether the call is sent.
	decided atomic.Bool
	done    chan struct{}
	reply   any
	err     error // if it is errNotReplicated, there is a reply, too
}

func newBatcher(client *redis.Client, l scriptLibrary, h *outageLog, k *replication) *scriptBatcher {
	return &scriptBatcher{client: client, scripts: l, outages: h, replication: k, queue: make(chan *call, maxQueuedCalls), stopped: make(chan struct{})}
}

func (c *scriptBatcher) start() {
	for range senderCount {
		c.work.Go(c.sendBatches)
	}
}

// stop ends the sender goroutines after the pipelines that are under way.
func (c *scriptBatcher) stop() {
	close(c.stopped)
	c.work.Wait()
}

var (
	errStopped = errors.New("batcher is stopped")
	errNoReply = errors.New("redis has not replied")
)

// replyGrace is how long run still waits after ctx has ended if the call is under way: a caller
// who learns the outcome need not repeat the call.
const replyGrace = 100 * time.Millisecond

// run runs a script and returns its reply. It returns an error soon after ctx has ended; even
// so the script may have run, or may run later, unless the error is a notSentError.
func (c *scriptBatcher) run(ctx context.Context, s script, keys []string, args ...any) (reply, error) {
	return c.send(ctx, &call{script: s, keys: keys, args: args})
}

// send queues a call and waits for its reply.
func (c *scriptBatcher) send(ctx context.Context, x *call) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	x.done = make(chan struct{})
	select {
	case c.queue <- x:
	case <-ctx.Done():
		return reply{}, notSentError{ctx.Err()}
	case <-c.stopped:
		return reply{}, notSentError{errStopped}
	}
	select {
	case <-x.done:
		return reply{x.reply}, x.err
	case <-ctx.Done():
	case <-c.stopped: // no sender reads the queue anymore
	}
	if x.decided.CompareAndSwap(false, true) {
		return reply{}, notSentError{cmp.Or(ctx.Err(), errStopped)}
	}
	select {
	case <-x.done:
		return reply{x.reply}, x.err
	case <-time.After(replyGrace):
		return reply{}, cmp.Or(ctx.Err(), errStopped)
	}
}

// sendBatches sends the calls that have gathered, until stop. Each sender goroutine runs it.
func (c *scriptBatcher) sendBatches() {
	for {
		select {
		case x := <-c.queue:
			if batch := c.gather(x); len(batch) > 0 {
				c.runBatch(batch)
			}
		case <-c.stopped:
			return
		}
	}
}

// gather collects x and the calls in the queue into a batch, without those that were withdrawn; it may be empty.
func (c *scriptBatcher) gather(x *call) (batch []*call) {
	for size := 0; ; {
		if x.decided.CompareAndSwap(false, true) {
			batch = append(batch, x)
			size += x.size
		}
		if len(batch) == maxBatchCalls || size > fullBatchBytes {
			return batch
		}
		select {
		case x = <-c.queue:
		default:
			return batch
		}
	}
}

// runBatch runs the scripts of a batch in one pipeline. It takes no context: the
// calls of a batch belong to many callers, and one who leaves must not cost the
// others the outcome of theirs. The client's timeouts bound it.
func (c *scriptBatcher) runBatch(batch []*call) {
	ctx := context.Background()
	c.runPipeline(ctx, batch, (*redis.Script).EvalSha)
	var unknown []*call
	for _, x := range batch {
		if redis.HasErrorPrefix(x.err, "NOSCRIPT") {
			unknown = append(unknown, x)
		}
	}
	if len(unknown) > 0 {
		// The server was restarted, or replaced by a replica, and does not know these scripts, so
		// they did not run. Eval sends their texts.
		c.runPipeline(ctx, unknown, (*redis.Script).Eval)
	}
	for _, x := range batch {
		c.outages.record(x.err)
		if redis.HasErrorPrefix(x.err, "READONLY") || redis.HasErrorPrefix(x.err, "MOVED") {
			c.replication.dialer.LeaveReplica()
		}
		close(x.done)
	}
}

// runPipeline runs the scripts of a batch with eval, and sets their replies and errors. If what some of
// them write must be on a replica too, it waits for that; if it is not, their error is errNotReplicated.
func (c *scriptBatcher) runPipeline(ctx context.Context, batch []*call, eval func(*redis.Script, context.Context, redis.Scripter, []string, ...any) *redis.Cmd) {
	relied := slices.ContainsFunc(batch, func(x *call) bool { return x.script.needsReplica() }) && c.replication.dialer.ReplicasNeeded > 0
	commands := make([]*redis.Cmd, len(batch))
	var failed error // why the pipeline failed, if it did
	var proof *proof
	if len(batch) == 1 && !relied {
		x := batch[0]
		commands[0] = eval(c.scripts[x.script], ctx, c.client, x.keys, x.args...)
	} else {
		pipe := c.client.Pipeline()
		for i, x := range batch {
			commands[i] = eval(c.scripts[x.script], ctx, pipe, x.keys, x.args...)
		}
		if relied {
			proof = c.replication.addProof(ctx, pipe)
		}
		_, failed = pipe.Exec(ctx)
	}
	for i, x := range batch {
		x.reply, x.err = commands[i].Result()
		if x.reply == nil && x.err == nil {
			// Each command has its own error, except where the server refuses the
			// connection: go-redis then leaves the commands as they are, unsent.
			x.err = cmp.Or(failed, errNoReply)
		}
	}
	if proof == nil {
		return
	}
	if err := c.replication.judge(ctx, proof); err != nil {
		for _, x := range batch {
			if x.err == nil && x.script.needsReplica() {
				x.err = err
			}
		}
	}
}

// notSentError is the error of a call that never left this process.
type notSentError struct{ error }

// Unwrap lets package errors see the cause.
func (e notSentError) Unwrap() error { return e.error }

// mayHaveRun reports whether the script of a call that failed with err may have run.
func mayHaveRun(err error) bool {
	if _, ok := errors.AsType[notSentError](err); ok {
		return false
	}
	if errors.Is(err, errNotReplicated) {
		return true
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return false // the server answered with an error: scripts check before they write
	}
	op, ok := errors.AsType[*net.OpError](err)
	return !ok || op.Op != "dial" // a failed dial has sent nothing
}

// healthyAfter is how long no call may fail before Redis counts as working again. One
// successful call proves nothing: a server without memory refuses writes, and answers all
// other calls.
const healthyAfter = 5 * time.Second

// An outageLog logs once that calls to Redis fail, and once that they succeed again.
type outageLog struct {
	log          *slog.Logger
	failing      atomic.Bool
	mu           sync.Mutex
	failingSince time.Time
	lastFailure  time.Time // when a call failed last
}

// record records how a call ended: err is nil if it succeeded.
func (h *outageLog) record(err error) {
	if err == nil && !h.failing.Load() {
		return // Redis worked before and works now; this usual case takes no lock
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if err != nil {
		h.lastFailure = now
	}
	switch ill := h.failing.Load(); {
	case ill && now.Sub(h.lastFailure) >= healthyAfter:
		h.failing.Store(false)
		h.log.Info("redis answers again", slog.Duration("after", h.lastFailure.Sub(h.failingSince)))
	case !ill && err != nil:
		h.failing.Store(true)
		h.failingSince = now
		if server.IsAnswer(err) {
			h.log.Error("redis refuses; everything is tried again", slog.Any("error", err))
		} else {
			h.log.Error("redis does not answer; everything is tried again", slog.Any("error", err))
		}
	}
}
