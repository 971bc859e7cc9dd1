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

	"parley/bus/redisbus/master"
	"parley/bus/redisbus/server"
)

const (
	// copyTimeout is how long replicas may take to confirm a write.
	copyTimeout = time.Second
	// aloneTimeout is used instead while no replica is connected.
	aloneTimeout = 100 * time.Millisecond
	// aloneAfter is how long a master has to be without replicas before it may go on alone, if the
	// Sentinels still agree on it. A replica that has left may have been promoted. The Sentinels need a
	// few seconds to say so, and what the old master accepts meanwhile is lost.
	aloneAfter = 10 * time.Second
	// watchEvery is how often the Sentinels are asked.
	watchEvery = 2 * time.Second
)

// errNotReplicated is the error of a script that has run, but whose writes may be lost if the master is
// replaced.
var errNotReplicated = errors.New("no replica of redis has confirmed it")

// replication makes sure that a write is on a replica too before anybody relies on it. It does so only with
// Sentinels.
type replication struct {
	client *redis.Client
	dialer *server.Dialer
	log    *slog.Logger
	grace  time.Duration // aloneAfter

	mu       sync.Mutex
	master   string    // the address of the master that the fields below describe
	replicas int       // how many replicas are connected to it
	alone    bool      // whether it may go on without replicas
	lostAt   time.Time // when it lost its last replica
	// fresh says that it became the master while this process ran, and has had no replica since, so no other server is
	// about to replace it.
	fresh bool
	runID string // run id of the process that may go on alone
}

func newReplication(client *redis.Client, w *server.Dialer, log *slog.Logger) *replication {
	return &replication{client: client, dialer: w, log: log, grace: aloneAfter}
}

// A proof shows whether a write can be relied on. If needed is not 0, that many replicas have to confirm
// it in time. Otherwise the server that wrote it must be the master that may go on alone, and have no
// replica.
type proof struct {
	needed     int
	waitAnswer *redis.Cmd          // the answer to WAIT
	runID      string              // run id of the process that may go on alone
	server     [2]*redis.StringCmd // the answers to askServer
}

// A serverState is the state that a server reports about itself.
type serverState struct {
	runID    string
	replicas int // how many replicas are connected
}

// addProof adds to a pipeline the commands that prove its writes. It returns nil if nothing has to be
// proved. The proof covers everything that was written to the server before, also over other connections.
func (r *replication) addProof(ctx context.Context, pipe redis.Pipeliner) *proof {
	if r.dialer.ReplicasNeeded == 0 {
		return nil
	}
	p := new(proof)
	var timeout time.Duration
	if p.needed, timeout, p.runID = r.needed(); p.needed > 0 {
		p.waitAnswer = pipe.Do(ctx, "wait", p.needed, timeout.Milliseconds())
	} else {
		p.server = askServer(ctx, pipe)
	}
	return p
}

// askServer adds to a pipeline the commands that ask the server to describe itself.
func askServer(ctx context.Context, pipe redis.Pipeliner) [2]*redis.StringCmd {
	return [2]*redis.StringCmd{pipe.Info(ctx, "server"), pipe.Info(ctx, "replication")}
}

// needed returns how many replicas have to confirm a write now, and how long they may take. If n is 0,
// only the server with this run id may have written it.
func (r *replication) needed() (n int, timeout time.Duration, runID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.replicas > 0:
		return min(r.dialer.ReplicasNeeded, r.replicas), copyTimeout, ""
	case r.alone:
		return 0, 0, r.runID
	}
	return 1, aloneTimeout, ""
}

// judge returns nil if a write can be relied on. If too few replicas have confirmed it, or it was written by another
// server than the one that may go on alone, it has to be repeated, even if fewer replicas would be enough from now
// on: the server that has it may be a master that was just replaced.
func (r *replication) judge(ctx context.Context, p *proof) error {
	var failed error
	if p.needed > 0 {
		answer, err := p.waitAnswer.Result()
		if err == nil && int((reply{answer}).number()) >= p.needed {
			return nil
		}
		failed = err
	} else {
		by, err := readServer(p.server)
		if err == nil && by.runID == p.runID && by.replicas == 0 {
			return nil
		}
		failed = err
	}
	if failed == nil {
		failed = r.refresh(ctx, nil)
	}
	if failed != nil {
		return fmt.Errorf("%w: %w", errNotReplicated, failed)
	}
	return errNotReplicated
}

// refresh asks the server how many replicas it has. If it has none, it matters whether the Sentinels still
// call it the master: view is what they have just said; if it is nil, refresh asks them.
func (r *replication) refresh(ctx context.Context, view *master.View) error {
	pipe := r.client.Pipeline()
	answers := askServer(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each answer contains its own error
	by, err := readServer(answers)
	if err != nil {
		return err
	}
	switch {
	case by.replicas > 0:
		view = &master.View{}
	case view == nil:
		said, err := r.dialer.Finder.View(ctx)
		if err != nil {
			return err
		}
		view = &said
	}
	r.record(by, *view)
	return nil
}

// record records how many replicas are connected and, if there are none, what the Sentinels say. The server that
// answered may be a master that was just replaced: only the server that the Sentinels call the master may go on
// alone.
func (r *replication) record(by serverState, view master.View) {
	named := r.dialer.Master()
	r.mu.Lock()
	defer r.mu.Unlock()
	before, was := r.replicas, r.alone
	if r.master != named {
		r.fresh, before = r.master != "", 1
	}
	r.master, r.replicas = named, by.replicas
	switch {
	case by.replicas > 0:
		r.alone, r.fresh = false, false
		if was {
			r.log.Info("redis has a replica again", slog.Int("replicas", by.replicas))
		}
		return
	case before > 0:
		r.alone, r.lostAt = false, time.Now()
	case r.runID != by.runID:
		r.alone = false
	}
	if !view.Stable || view.Master != named || view.RunID != by.runID {
		return
	}
	r.runID = by.runID
	if r.alone = r.alone || r.fresh || view.Replicas == 0 || time.Since(r.lostAt) >= r.grace; r.alone && !was {
		r.log.Warn("redis has no replica in touch: if its master is lost, so is what comes now")
	}
}

// prepare asks the master how many replicas it has, so that the first write waits for them as long as later writes do.
func (r *replication) prepare(ctx context.Context) {
	if r.dialer.ReplicasNeeded > 0 {
		_ = r.refresh(ctx, nil) // if it fails, watch asks again, and the first write waits only for aloneTimeout
	}
}

// watch asks the Sentinels and the master every now and then until ctx is done. When the Sentinels name
// another master, it closes the connections to the old one.
func (r *replication) watch(ctx context.Context) {
	if r.dialer.Finder == nil {
		return
	}
	for {
		view, err := r.dialer.Finder.View(ctx)
		if err == nil && r.dialer.SwitchMaster(view.Master) {
			r.log.Info("redis has another master", slog.String("address", view.Master))
		}
		if err == nil && r.dialer.ReplicasNeeded > 0 {
			_ = r.refresh(ctx, &view) // if it fails, the calls that need an answer fail too and report it
		}
		select {
		case <-time.After(jitter(watchEvery)):
		case <-ctx.Done():
			return
		}
	}
}

// readServer reads the answers to askServer.
func readServer(answers [2]*redis.StringCmd) (by serverState, err error) {
	for _, a := range answers {
		info, err := a.Result()
		if err != nil {
			return serverState{}, err
		}
		for line := range strings.Lines(info) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "run_id" {
				by.runID = value
			}
		}
		by.replicas += server.CountReplicas(info)
	}
	return by, nil
}
