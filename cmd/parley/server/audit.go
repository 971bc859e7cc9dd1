package server

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/cmd/parley/api"
	"parley/cmd/parley/audit"
	"parley/cmd/parley/config"
	"parley/cmd/parley/erase"
	"parley/sessions"
)

// openAuditFile adds the file, if one is configured, to where it is recorded what is
// done. Who only looks makes none.
func (s *Server) openAuditFile(c Config) error {
	set := c.Settings.Audit
	if set.File == "" {
		return nil
	}
	s.auditFile = audit.NewFile(set.File, int64(set.MaxMB)<<20)
	s.trail = audit.New(audit.Config{Store: s.home.Store, File: s.auditFile, Keep: keptFor(c.Settings), Log: c.Log})
	if c.Role == Reader {
		return nil
	}
	if err := s.auditFile.Check(); err != nil {
		return &config.SettingError{
			Where: c.Settings.Origin("audit.file"), Key: "audit.file",
			Remedy: fmt.Sprintf("it cannot be written (%v): name a file in a folder that there is", err),
		}
	}
	return nil
}

// keptFor is how long audit records are kept: no longer than what they are about.
func keptFor(c *config.Config) time.Duration {
	days := c.Audit.Days
	if c.Retention.Days > 0 {
		days = min(days, c.Retention.Days)
	}
	return time.Duration(days) * 24 * time.Hour
}

// auditAccess is the audit as the API has it. A process that only looks does not
// record that it did: it may not be able to write.
func (s *Server) auditAccess() api.Audit {
	return api.Audit{Record: s.trail.Record, Records: s.trail.Records, Lost: s.metrics.AuditLost, Reads: s.role != Reader}
}

// auditOwner records that a person has become an owner by a code that was said in a chat.
func (s *Server) auditOwner(ctx context.Context, person string) {
	record := sessions.AuditRecord{At: time.Now(), Kind: sessions.AuditPairing, By: person, Result: "owner", Detail: person}
	if err := s.trail.Record(context.WithoutCancel(ctx), record); err != nil {
		s.metrics.AuditLost()
		s.log.Error("a new owner is not in the audit", slog.String("person", person), slog.Any("error", err))
	}
}

// auditFiles is what of the audit an erasure has to be told of; the store's part it
// finds itself.
func (s *Server) auditFiles() erase.AuditFiles {
	if s.auditFile == nil {
		return nil
	}
	return s.auditFile
}

// toolCounts is what has become of the calls of tools in this process.
func (s *Server) toolCounts() []api.ToolCount {
	list := []api.ToolCount{}
	for _, t := range s.metrics.Tools() {
		list = append(list, api.ToolCount(t))
	}
	return list
}
