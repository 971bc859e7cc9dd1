package server

import (
	"context"
	"errors"
)

// Host opens a server for a single command, and serves the home's socket until
// leave is called.
func Host(ctx context.Context, c Config) (leave func() error, err error) {
	s, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	f, err := s.newHTTPAccess()
	if err != nil {
		return nil, err
	}
	socket, _, err := f.listen("")
	if err != nil {
		return nil, err
	}
	// The command leaves by itself, in order, also when it is interrupted.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() {
		done <- s.run(running, s.stages(func(ctx context.Context) error { return f.serve(ctx, socket, nil) })...)
	}()
	return func() error {
		stop()
		return errors.Join(<-done, s.Close())
	}, nil
}
