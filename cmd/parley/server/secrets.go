package server

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"parley/cmd/parley/config"
	"parley/tools/redact"
)

// secrets are removed from the log, and from everything that leaves an agent.
type secrets struct {
	atomic.Pointer[redact.Redactor] // in force
}

// newSecrets returns the secrets of the settings. What the home holds is not among them until a redactor
// that knows it is stored.
func newSecrets(c *config.Config) (*secrets, error) {
	known, err := redactorOf(c, nil)
	if err != nil {
		return nil, err
	}
	s := &secrets{}
	s.Store(known)
	return s, nil
}

// redactorOf returns what removes the secrets of the settings, and more.
func redactorOf(c *config.Config, more []string) (*redact.Redactor, error) {
	r, err := redact.New(append(c.Secrets(), more...), c.Tools.Redact)
	if err != nil {
		return nil, fmt.Errorf("tools.redact: %w", err)
	}
	return r, nil
}

// text returns a text without the secrets.
func (s *secrets) text(text string) string { return s.Load().Text(text) }

// hide returns a logger from whose records secrets are removed.
func (s *secrets) hide(log *slog.Logger) *slog.Logger {
	return slog.New(redact.Handler(log.Handler(), s.Load))
}
