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
}

func newCopies(client *redis.Client, w *way, log *slog.Logger) *copies {
	return &copies{client: client, way: w, log: log, grace: aloneAfter}
}

// A proof is what shows that a write can be relied on: so many replicas have to confirm it in time, or
// if that is 0, the master must have none.
type proof struct {
	needed  int
	timeout time.Duration
	answer  *redis.Cmd // of WAIT, or of ROLE
}

// begin adds to a pipeline the command that proves what it has written. It returns nil if nothing has to be
// proved. The command tells of all that the server was told before, also over other connections.
func (c *copies) begin(ctx context.Context, pipe redis.Pipeliner) *proof {
	if c.way.copies == 0 {
		return nil
	}
	p := new(proof)
	if p.needed, p.timeout = c.needed(); p.needed > 0 {
		p.answer = pipe.Do(ctx, "wait", p.needed, p.timeout.Milliseconds())
	} else {
		p.answer = pipe.Do(ctx, "role")
	}
	return p
}

// needed returns how many replicas have to confirm a write now, and how long they may take.
func (c *copies) needed() (n int, timeout time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.online > 0:
		return min(c.way.copies, c.online), copyTimeout
	case c.alone:
		return 0, 0
	}
	return 1, aloneTimeout
}

// judge returns nil if what was written can be relied on. If too few replicas have confirmed it, or one
// has come, it asks the master how many there are.
func (c *copies) judge(ctx context.Context, p *proof) error {
	answer, err := p.answer.Result()
	switch {
	case err != nil && (p.needed > 0 || !isServerAnswer(err)): // a server that does not tell its role goes on alone
		return fmt.Errorf("%w: %w", errNotCopied, err)
	case p.needed == 0:
		if len((reply{answer}).at(2).list()) == 0 {
			return nil
		}
		if err := c.look(ctx, nil); err != nil {
			return fmt.Errorf("%w: %w", errNotCopied, err)
		}
		pipe := c.client.Pipeline()
		pipe.Ping(ctx)
		again := c.begin(ctx, pipe)
		if _, err := pipe.Exec(ctx); err != nil || again.needed == 0 {
			return errNotCopied
		}
		return c.judge(ctx, again)
	}
	confirmed := int((reply{answer}).number())
	if confirmed >= p.needed {
		return nil
	}
	if err := c.look(ctx, nil); err != nil {
		return fmt.Errorf("%w: %w", errNotCopied, err)
	}
	if needed, _ := c.needed(); confirmed >= needed {
		return nil
	}
	return errNotCopied
}

// look asks the master for its replicas. If there is none, it matters whether the Sentinels call it the master still:
// view is what they have just said, and nil has them asked.
func (c *copies) look(ctx context.Context, view *sentinel.View) error {
	info, err := c.client.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}
	online := countReplicas(info)
	switch {
	case online > 0:
		view = &sentinel.View{}
	case view == nil:
		said, err := c.way.finder.View(ctx)
		if err != nil {
			return err
		}
		view = &said
	}
	c.note(online, *view)
	return nil
}

// note takes note of how many replicas are in touch, and if there is none, of what the Sentinels say.
func (c *copies) note(online int, view sentinel.View) {
	c.way.mu.Lock()
	master := c.way.master
	c.way.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	before, was := c.online, c.alone
	if c.master != master {
		c.fresh, before = c.master != "", 1
	}
	c.master, c.online = master, online
	switch {
	case online > 0:
		c.alone, c.fresh = false, false
		if was {
			c.log.Info("redis has a replica again", slog.Int("replicas", online))
		}
		return
	case before > 0:
		c.alone, c.lost = false, time.Now()
	}
	if !view.Calm || view.Master != master {
		return
	}
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
