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

// openAuditFile makes the audit write to a file too, if one is configured. For a process that
// only reads (the role Reader) it does not create the file.
func (s *Server) openAuditFile(c Config) error {
	set := c.Settings.Audit
	if set.File == "" {
		return nil
	}
	s.auditFile = audit.NewFile(set.File, int64(set.MaxMB)<<20)
	s.trail = audit.New(audit.Config{Store: s.home.Store, File: s.auditFile, Keep: auditRetention(c.Settings), Log: c.Log})
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

// auditRetention returns how long audit records are kept: no longer than the logs of the sessions
// that they are about.
func auditRetention(c *config.Config) time.Duration {
	days := c.Audit.Days
	if c.Retention.Days > 0 {
		days = min(days, c.Retention.Days)
	}
	return time.Duration(days) * 24 * time.Hour
}

// auditAccess returns the audit in the form in which the API uses it. A process that only reads
// (the role Reader) does not record that it did, because it may not be able to write.
func (s *Server) auditAccess() api.Audit {
	return api.Audit{Record: s.trail.Record, Records: s.trail.Records, Lost: s.metrics.AuditLost, Reads: s.role != Reader}
}

// auditOwner records that a person has become an owner by saying a code in a chat.
func (s *Server) auditOwner(ctx context.Context, person string) {
	record := sessions.AuditRecord{At: time.Now(), Kind: sessions.AuditPairing, By: person, Result: "owner", Detail: person}
	if err := s.trail.Record(context.WithoutCancel(ctx), record); err != nil {
		s.metrics.AuditLost()
		s.log.Error("a new owner is not in the audit", slog.String("person", person), slog.Any("error", err))
	}
}

// auditFiles returns the audit's file, so that an erasure can remove a person from it; nil if
// there is none. The records in the store are erased without it.
func (s *Server) auditFiles() erase.AuditFiles {
	if s.auditFile == nil {
		return nil
	}
	return s.auditFile
}

// toolCounts returns how many calls of each tool were made and failed in this process.
func (s *Server) toolCounts() []api.ToolCount {
	list := []api.ToolCount{}
	for _, t := range s.metrics.Tools() {
		list = append(list, api.ToolCount(t))
	}
	return list
}
