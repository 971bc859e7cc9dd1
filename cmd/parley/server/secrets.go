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
	atomic.Pointer[redact.Redactor] // the current redactor
}

// newSecrets returns the secrets in the settings. The home's own secrets are not included until a redactor that
// knows them is stored.
func newSecrets(c *config.Config) (*secrets, error) {
	known, err := redactorOf(c, nil)
	if err != nil {
		return nil, err
	}
	s := &secrets{}
	s.Store(known)
	return s, nil
}

// redactorOf returns a redactor for the secrets in the settings, and for others.
func redactorOf(c *config.Config, others []string) (*redact.Redactor, error) {
	r, err := redact.New(append(c.Secrets(), others...), c.Tools.Redact)
	if err != nil {
		return nil, fmt.Errorf("tools.redact: %w", err)
	}
	return r, nil
}

// text returns a text without the secrets.
func (s *secrets) text(text string) string { return s.Load().Text(text) }

// hideIn returns a logger that writes to log and removes secrets from its records.
func (s *secrets) hideIn(log *slog.Logger) *slog.Logger {
	return slog.New(redact.Handler(log.Handler(), s.Load))
}
