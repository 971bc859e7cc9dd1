// Package audit stores records of what was done, for those who have to account for it: in the store, and
// in a file of JSON lines if the operator configures one.
//
// The store's table is authoritative: a record is kept once it is there. The file is a copy for programs
// that read files; it is not flushed to the disk, so a power failure may lose its end.
package audit

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/sessions"
)

// Config says where records are stored, and for how long.
type Config struct {
	Store          sessions.Auditor
	File           *File         // nil: no file
	RecordLifetime time.Duration // older records are deleted
	OnLost         func()        // if set, called when a record given to Note is lost
	Log            *slog.Logger
}

// A Trail writes audit records, each of which says who did what, to the store and, if one is
// configured, to a file.
type Trail struct {
	cfg   Config
	notes *notes
}

// New makes a Trail.
func New(cfg Config) *Trail { return &Trail{cfg, newNotes()} }

// Record writes a record to the store, and to the file if there is one. If one of these fails, the other
// is still written.
func (t *Trail) Record(ctx context.Context, r sessions.AuditRecord) error {
	return t.record(ctx, r, t.cfg.Store.Audit)
}

// RecordSoon does what Record does. If the store is a [sessions.SoonAuditor], it does not wait for the
// store's disk.
func (t *Trail) RecordSoon(ctx context.Context, r sessions.AuditRecord) error {
	keep := t.cfg.Store.Audit
	if soon, ok := t.cfg.Store.(sessions.SoonAuditor); ok {
		keep = soon.AuditSoon
	}
	return t.record(ctx, r, keep)
}

// record writes a record to the store, with the function write, and to the file.
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

// Records reads records from the store. See [sessions.Auditor].
func (t *Trail) Records(ctx context.Context, q sessions.AuditQuery) ([]sessions.AuditRecord, error) {
	return t.cfg.Store.AuditRecords(ctx, q)
}

// How often old records are deleted, and how soon again after a failure.
const (
	dropInterval      = time.Hour
	dropRetryInterval = 10 * time.Minute
)

// Run writes the records given to Note until ctx is done. It also deletes old records, at once and then
// every hour. Several processes of a fleet may do so at the same time.
func (t *Trail) Run(ctx context.Context) error {
	var noting sync.WaitGroup
	noting.Go(func() { t.runNotes(ctx) })
	defer noting.Wait()
	for ctx.Err() == nil {
		next := dropInterval
		if err := t.drop(ctx, time.Now().Add(-t.cfg.RecordLifetime)); err != nil && ctx.Err() == nil {
			next = dropRetryInterval
			t.cfg.Log.Error("old audit records could not be deleted; trying again later", slog.Any("error", err))
		}
		select {
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
	return nil
}

// drop deletes the records in the store, and the files, that are older than before.
func (t *Trail) drop(ctx context.Context, before time.Time) error {
	_, err := t.cfg.Store.DropAudit(ctx, before)
	err = errors.Join(err, t.cfg.Store.DropRefusals(ctx, time.Now().Add(-sessions.RefusalLifetime)))
	if t.cfg.File != nil {
		err = errors.Join(err, t.cfg.File.drop(before))
	}
	return err
}

// Close writes the records that are still waiting, and closes the file.
func (t *Trail) Close() error {
	t.flush()
	if t.cfg.File == nil {
		return nil
	}
	return t.cfg.File.Close()
}
