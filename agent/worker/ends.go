package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"parley/tools"
)

// The reasons why a run ends before it has handled all of its mail, or why a turn's
// steps end before the model has given its last answer.
var (
	errShutdown     = errors.New("shutting down")
	errTooManyTurns = errors.New("the person has enough turns at once")
	errStopped      = fmt.Errorf("stopped by /stop: %w", tools.ErrUnwanted)
	errTooLong      = fmt.Errorf("the turn took too long: %w", tools.ErrUnwanted)
	errParked       = errors.New("the turn waits for people")
	// errUnsendable is returned for a turn that is over and whose answer no bus accepts.
	errUnsendable = errors.New("the answer can never be sent")
)

// An openError is returned for a session whose log can't be opened or decoded.
type openError struct{ err error }

// Error returns the reason.
func (e *openError) Error() string { return e.err.Error() }

// Unwrap returns the reason.
func (e *openError) Unwrap() error { return e.err }

// A buryError says that a message must become a dead letter.
type buryError struct {
	seq    int64
	reason string
}

// Error returns why the message must become a dead letter.
func (e *buryError) Error() string { return e.reason }

// A turnStop lets a command end the running turn, or the reading of its answer.
type turnStop struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil while no turn runs and nothing is read aloud
}

// set sets the function that ends the running turn, or the reading of its answer; nil means that both have ended.
func (s *turnStop) set(cancel context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
}

// isSet reports whether a turn is running or its answer is being read aloud.
func (s *turnStop) isSet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancel != nil
}

// stop ends the running turn, or the reading of its answer, if there is one.
func (s *turnStop) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(errStopped)
	}
}
