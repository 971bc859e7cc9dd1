package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/erase"
	"parley/sessions"
	"parley/sessions/audit"
)

// auditing records what is done: in the store, and in a file if one is configured.
type auditing struct {
	foundation
	*audit.Trail
	file *audit.File // nil if none is configured
}

// newAuditing returns the part that records what is done. It doesn't open the file.
func newAuditing(on foundation) *auditing {
	a := &auditing{foundation: on}
	c := on.settings.Load()
	if c.Audit.File != "" {
		a.file = audit.NewFile(c.Audit.File, int64(c.Audit.MaxMB)<<20)
	}
	a.Trail = audit.New(audit.Config{Store: on.home.Store, File: a.file, RecordLifetime: auditRetention(c), OnLost: on.metrics.AuditLost, Log: on.log})
	return a
}

// Load checks that the file can be written to. A process that only reads (the role Reader) checks nothing, because
// the check creates the file.
func (a *auditing) Load(context.Context) error {
	if a.file == nil || a.role == Reader {
		return nil
	}
	if err := a.file.Check(); err != nil {
		return &config.SettingError{
			Where: a.settings.Load().Origin("audit.file"), Key: "audit.file",
			Remedy: fmt.Sprintf("it can't be written (%v): name a file in an existing folder", err),
		}
	}
	return nil
}

// auditRetention returns how long audit records are kept: no longer than the logs of the sessions that they belong
// to.
func auditRetention(c *config.Config) time.Duration {
	days := c.Audit.Days
	if c.Retention.Days > 0 {
		days = min(days, c.Retention.Days)
	}
	return time.Duration(days) * 24 * time.Hour
}

// forAPI returns the audit in the form in which the API uses it. A process with the role Reader doesn't record who
// exports sessions, because it may not be able to write.
func (a *auditing) forAPI() api.Audit {
	return api.Audit{Record: a.Record, Records: a.Records, Lost: a.metrics.AuditLost, Reads: a.role != Reader}
}

// recordDecision records who became an owner by using a code, and about whom an owner decided in a chat.
func (a *auditing) recordDecision(ctx context.Context, by, person, result string) {
	record := sessions.AuditRecord{At: time.Now(), Kind: sessions.AuditPairing, By: by, Result: result, Detail: person}
	if err := a.Record(context.WithoutCancel(ctx), record); err != nil {
		a.metrics.AuditLost()
		a.log.Error("a decision about a person is not in the audit", slog.String("person", person), slog.Any("error", err))
	}
}

// files returns the audit's file, so that an erasure can remove a person from it; nil if
// there is none. The records in the store are erased without it.
func (a *auditing) files() erase.AuditFiles {
	if a.file == nil {
		return nil
	}
	return a.file
}
