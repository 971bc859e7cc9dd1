package redisbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bus/redisbus/sentinel"
)

const (
	// copyTimeout is how long replicas may take to confirm a write.
	copyTimeout = time.Second
	// aloneTimeout takes its place while no replica is in touch.
	aloneTimeout = 100 * time.Millisecond
	// aloneAfter is how long the Sentinels have to agree on a master that has lost its last replica
	// until it may go on alone. A replica that leaves may have been promoted, and then the Sentinels
	// need a few seconds to say so, and what the old master accepts meanwhile is lost.
	aloneAfter = 10 * time.Second
	// watchEvery is how often the Sentinels are asked.
	watchEvery = 2 * time.Second
)

// errNotCopied is the error of a script that has run, and may be lost if the master is replaced.
var errNotCopied = errors.New("no replica of redis has confirmed it")

// copies sees to it that what is written is on a replica too before anybody relies on it. Only with
// Sentinels is anything copied.
type copies struct {
	client *redis.Client
	way    *way
	log    *slog.Logger
	grace  time.Duration // aloneAfter

	mu     sync.Mutex
	master string    // of which the rest is true
	online int       // how many replicas are in touch
	alone  bool      // whether it may go on without any
	lost   time.Time // if there is none: since when
	// fresh says that it has become the master while this process ran, and has had no replica
	// since: no other is about to replace it.
	fresh bool
	runID string // of the server that may go on alone
}

func newCopies(client *redis.Client, w *way, log *slog.Logger) *copies {
	return &copies{client: client, way: w, log: log, grace: aloneAfter}
}

// A proof is what shows that a write can be relied on: so many replicas have to confirm it in time, or
// if that is 0, the server that has written it must be the master that may go on alone, and have no replica.
type proof struct {
	needed int
	copied *redis.Cmd // the answer to WAIT
	runID  string     // of the server that may go on alone
	server [2]*redis.StringCmd
}

// A node is the server that has answered, by its own account.
type node struct {
	runID  string
	online int // how many replicas are in touch
}

// begin adds to a pipeline the command that proves what it has written. It returns nil if nothing has to be
// proved. The command tells of all that the server was told before, also over other connections.
func (c *copies) begin(ctx context.Context, pipe redis.Pipeliner) *proof {
	if c.way.copies == 0 {
		return nil
	}
	p := new(proof)
	var timeout time.Duration
	if p.needed, timeout, p.runID = c.needed(); p.needed > 0 {
		p.copied = pipe.Do(ctx, "wait", p.needed, timeout.Milliseconds())
	} else {
		p.server = askNode(ctx, pipe)
	}
	return p
}

// askNode adds to a pipeline what asks the server who it is.
func askNode(ctx context.Context, pipe redis.Pipeliner) [2]*redis.StringCmd {
	return [2]*redis.StringCmd{pipe.Info(ctx, "server"), pipe.Info(ctx, "replication")}
}

// needed returns how many replicas have to confirm a write now, and how long they may take. If none has to, only the
// server with this run id may have written it.
func (c *copies) needed() (n int, timeout time.Duration, runID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.online > 0:
		return min(c.way.copies, c.online), copyTimeout, ""
	case c.alone:
		return 0, 0, c.runID
	}
	return 1, aloneTimeout, ""
}

// judge returns nil if what was written can be relied on. If too few replicas have confirmed it, or another server has
// written it than the one that may go on alone, it has to be repeated, even if fewer would do from now on: the server
// that has it may be a master that was just replaced.
func (c *copies) judge(ctx context.Context, p *proof) error {
	var failed error
	if p.needed > 0 {
		answer, err := p.copied.Result()
		if err == nil && int((reply{answer}).number()) >= p.needed {
			return nil
		}
		failed = err
	} else {
		by, err := readNode(p.server)
		if err == nil && by.runID == p.runID && by.online == 0 {
			return nil
		}
		failed = err
	}
	if failed == nil {
		failed = c.look(ctx, nil)
	}
	if failed != nil {
		return fmt.Errorf("%w: %w", errNotCopied, failed)
	}
	return errNotCopied
}

// look asks the master for its replicas. If there is none, it matters whether the Sentinels call it the master still:
// view is what they have just said, and nil has them asked.
func (c *copies) look(ctx context.Context, view *sentinel.View) error {
	pipe := c.client.Pipeline()
	answers := askNode(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each answer has its error
	by, err := readNode(answers)
	if err != nil {
		return err
	}
	switch {
	case by.online > 0:
		view = &sentinel.View{}
	case view == nil:
		said, err := c.way.finder.View(ctx)
		if err != nil {
			return err
		}
		view = &said
	}
	c.note(by, *view)
	return nil
}

// note takes note of how many replicas are in touch, and if there is none, of what the Sentinels say. Who has answered
// may be a master that was just replaced: only the server that the Sentinels call the master may go on alone.
func (c *copies) note(by node, view sentinel.View) {
	c.way.mu.Lock()
	master := c.way.master
	c.way.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	before, was := c.online, c.alone
	if c.master != master {
		c.fresh, before = c.master != "", 1
	}
	c.master, c.online = master, by.online
	switch {
	case by.online > 0:
		c.alone, c.fresh = false, false
		if was {
			c.log.Info("redis has a replica again", slog.Int("replicas", by.online))
		}
		return
	case before > 0:
		c.alone, c.lost = false, time.Now()
	case c.runID != by.runID:
		c.alone = false
	}
	if !view.Calm || view.Master != master || view.RunID != by.runID {
		return
	}
	c.runID = by.runID
	if c.alone = c.alone || c.fresh || view.Replicas == 0 || time.Since(c.lost) >= c.grace; c.alone && !was {
		c.log.Warn("redis has no replica in touch: if its master is lost, so is what comes now")
	}
}

// watch looks at the Sentinels and the master now and then until ctx is done, and leaves a master that
// is one no more.
func (c *copies) watch(ctx context.Context) {
	if c.way.finder == nil {
		return
	}
	for {
		view, err := c.way.finder.View(ctx)
		if err == nil && c.way.follow(view.Master) {
			c.log.Info("redis has another master", slog.String("address", view.Master))
		}
		if err == nil && c.way.copies > 0 {
			_ = c.look(ctx, &view) // the calls that fail meanwhile say so
		}
		select {
		case <-time.After(jitter(watchEvery)):
		case <-ctx.Done():
			return
		}
	}
}

// readNode reads who has answered to askNode.
func readNode(answers [2]*redis.StringCmd) (by node, err error) {
	for _, a := range answers {
		info, err := a.Result()
		if err != nil {
			return node{}, err
		}
		for line := range strings.Lines(info) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "run_id" {
				by.runID = value
			}
		}
		by.online += countReplicas(info)
	}
	return by, nil
}

// countReplicas returns how many replicas are in touch with a master, from its answer to INFO. One that
// still copies everything is not.
func countReplicas(info string) (online int) {
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(line, ":")
		if strings.HasPrefix(name, "slave") && strings.Contains(value, "state=online") {
			online++
		}
	}
	return online
}
