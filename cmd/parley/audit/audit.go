// Package audit keeps records of what was done: in the store, and in a file of JSON lines if the operator names one.
//
// The store's table is what counts: a record is kept when it is there. The file is a copy
// for programs that read files; it is not flushed to the disk, so a power cut may lose
// its end.
package audit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/sessions"
)

// Config says where records are kept, and for how long.
type Config struct {
	Store sessions.Auditor
	File  *File         // nil: no file
	Keep  time.Duration // older records are deleted
	Log   *slog.Logger
}

// A Trail writes audit records, each of which says who did what, to the store and, if one is
// configured, to a file.
type Trail struct{ cfg Config }

// New makes a Trail.
func New(cfg Config) *Trail { return &Trail{cfg} }

// Record writes a record to the store, and to the file if there is one. If one of them
// fails, the other is written all the same.
func (t *Trail) Record(ctx context.Context, r sessions.AuditRecord) error {
	return t.record(ctx, r, t.cfg.Store.Audit)
}

// RecordSoon does what Record does, but if the store is a [sessions.SoonAuditor], without waiting for
// its disk.
func (t *Trail) RecordSoon(ctx context.Context, r sessions.AuditRecord) error {
	keep := t.cfg.Store.Audit
	if soon, ok := t.cfg.Store.(sessions.SoonAuditor); ok {
		keep = soon.AuditSoon
	}
	return t.record(ctx, r, keep)
}

// record writes a record to the store, by the function write, and to the file.
func (t *Trail) record(ctx context.Context, r sessions.AuditRecord, write func(context.Context, sessions.AuditRecord) error) error {
	if r.At.IsZero() {
		r.At = time.Now()
	}
	err := write(ctx, r)
	if t.cfg.File != nil {
		err = errors.Join(err, t.cfg.File.Write(r))
	}
	return err
}

// Records reads the records of a kind from the store: at most limit, whose ids follow after. See
// [sessions.Auditor].
func (t *Trail) Records(ctx context.Context, kind string, after int64, limit int) ([]sessions.AuditRecord, error) {
	return t.cfg.Store.AuditRecords(ctx, kind, after, limit)
}

// How often old records are deleted, and how soon again after a failure.
const (
	dropEvery = 24 * time.Hour
	dropAgain = time.Hour
)

// Run deletes old records, at once and then daily, until ctx is done. Several
// processes of a fleet may do so side by side.
func (t *Trail) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		next := dropEvery
		if err := t.drop(ctx, time.Now().Add(-t.cfg.Keep)); err != nil && ctx.Err() == nil {
			next = dropAgain
			t.cfg.Log.Error("old audit records could not be deleted; trying again later", slog.Any("error", err))
		}
		select {
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
	return nil
}

// drop deletes the records of the store, and the files, that are older than before.
func (t *Trail) drop(ctx context.Context, before time.Time) error {
	_, err := t.cfg.Store.DropAudit(ctx, before)
	if t.cfg.File != nil {
		err = errors.Join(err, t.cfg.File.drop(before))
	}
	return err
}

// Close closes the file.
func (t *Trail) Close() error {
	if t.cfg.File == nil {
		return nil
	}
	return t.cfg.File.Close()
}
