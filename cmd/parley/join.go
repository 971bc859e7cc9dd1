package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"parley/agent"
	"parley/bus/sqlitebus"
	"parley/cmd/parley/config"
)

// A need is what a command wants of the process that has the home.
type need struct {
	model     agent.Model // who answers, if this process is to answer
	send      bool        // what is said is to be sent now, not at the next serve
	workspace string      // a directory to work in: then nobody else's server will do
}

// join reaches the server that has the home, or becomes it for as long as the
// command runs. leave gives the home back.
func join(ctx context.Context, cfg *config.Config, n need, log *slog.Logger) (c *client, leave func() error, err error) {
	const patience = 5 * time.Second // for a process that is starting or ending
	for deadline := time.Now().Add(patience); ; {
		c = dial(cfg.Home)
		if c.alive(ctx) {
			if n.workspace != "" {
				return nil, nil, errors.New("--workspace needs the home for itself, and another parley has it: stop that one, or give another --home")
			}
			return c, func() error { return nil }, nil
		}
		leave, err = host(ctx, cfg, n, log)
		if err == nil {
			c.hosted = true
			return c, leave, nil
		}
		if _, used := errors.AsType[*sqlitebus.InUseError](err); !used || time.Now().After(deadline) {
			return nil, nil, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// host opens the home and serves its socket.
func host(ctx context.Context, cfg *config.Config, n need, log *slog.Logger) (leave func() error, err error) {
	h, err := openHome(ctx, cfg, n.workspace, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	lines, err := openLines(cfg, h.book, log)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		l.receive = false // serve receives; a command only sends what its person wants sent
	}
	s := newServer(h, cfg, n.model, lines, log)
	f, err := s.newFront()
	if err != nil {
		return nil, err
	}
	socket, _, err := f.listen("")
	if err != nil {
		return nil, err
	}
	stages := []func(context.Context) error{func(ctx context.Context) error { return f.serve(ctx, socket, nil) }}
	if n.model != nil {
		stages = append(stages, s.work)
	}
	if n.send || n.model != nil {
		stages = append(stages, s.dispatch)
	}
	// The command leaves by itself, in order, also when it is interrupted.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- s.run(running, stages...) }()
	return func() error {
		stop()
		return errors.Join(<-done, h.Close())
	}, nil
}

// dial makes a client of whoever serves the home's socket.
func dial(home string) *client {
	path := socketPath(home)
	return &client{base: "http://parley", http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
		MaxIdleConnsPerHost: 4,
	}}}
}

func (c *client) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return c.get(ctx, "/healthz", nil) == nil
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// use joins the home for one command.
func use(ctx context.Context, flags *cli, tty terminal, n need, do func(context.Context, *client) error) error {
	cfg, err := config.Load(config.Options{File: flags.Config, Home: flags.Home})
	if err != nil {
		return err
	}
	c, leave, err := join(ctx, cfg, n, quiet(tty.err))
	if err != nil {
		return fmt.Errorf("reach the home %s: %w", cfg.Home, err)
	}
	err = do(ctx, c)
	if left := leave(); err == nil {
		err = left
	}
	return err
}
