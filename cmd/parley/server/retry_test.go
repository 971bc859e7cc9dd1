package server

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
)

func TestInsist(t *testing.T) {
	t.Parallel()
	away := errors.New("nobody answers")
	for _, c := range []struct {
		name  string
		fails int
		err   error
		want  error
		asked int
	}{
		{"at once", 0, nil, nil, 1},
		{"after an outage", 20, away, nil, 21},
		{"refused", 1, fmt.Errorf("publish: %w", bus.ErrFull), bus.ErrFull, 1},
		{"never", 1000, away, away, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				asked := 0
				err := retryUntilDone(ctx, func() error {
					if asked++; asked <= c.fails {
						return c.err
					}
					return nil
				})
				if !errors.Is(err, c.want) || asked != c.asked {
					t.Errorf("it gives %v after %d times, want %v after %d", err, asked, c.want, c.asked)
				}
			})
		})
	}
}
