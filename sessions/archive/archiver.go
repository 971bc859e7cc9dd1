package archive

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"parley/sessions/sqldb"
)

const (
	// archiveDelay is how long after the end of a day it is archived, so that most late records are in its file.
	archiveDelay = 10 * time.Minute
	// lateRecordWindow is how old a record may be, compared with the newest archived day, to be found at once. Older ones
	// are found before they are deleted from the audit.
	lateRecordWindow = 48 * time.Hour
	// attemptTimeout is how long archiving may take before it has failed.
	attemptTimeout             = time.Hour
	readyCheckInterval         = 10 * time.Second                   // when it is asked again whether the audit may be archived
	minRetryWait, maxRetryWait = 10 * time.Second, 10 * time.Minute // after a failure
)

// Config holds what an Archiver needs.
type Config struct {
	Table Table
	Place Place
	Spool string // a folder for a temporary file
	// Ready reports whether the audit may be archived now; nil means that it may.
	Ready          func(ctx context.Context) (bool, error)
	RecordLifetime time.Duration     // how long records stay in the audit
	Point          func(name string) // called where a test may kill the process; nil for none
	Log            *slog.Logger
}

// An Archiver archives each day of the audit.
type Archiver struct {
	Config
	failingSince atomic.Int64 // since when this process has failed to archive; 0 if it hasn't
	newestDayEnd atomic.Int64 // when the newest archived day ended, while this process archives; 0 if it isn't known
}

// New makes an Archiver. It archives nothing before Run.
func New(c Config) *Archiver {
	if c.Point == nil {
		c.Point = func(string) {}
	}
	if c.Ready == nil {
		c.Ready = func(context.Context) (bool, error) { return true, nil }
	}
	return &Archiver{Config: c}
}

// Run archives each day once it is over, until ctx is done. Only one process may do so at a time. What another one has
// begun is continued. After a failure it tries again.
func (a *Archiver) Run(ctx context.Context) error {
	defer a.failingSince.Store(0)
	defer a.newestDayEnd.Store(0)
	fence, wait := int64(0), minRetryWait
	for ctx.Err() == nil {
		ready, err := a.attempt(ctx, &fence)
		next := time.Until(nextDue(time.Now()))
		switch {
		case err == nil && !ready:
			next = readyCheckInterval
		case err == nil:
			wait = minRetryWait
		case errors.Is(err, ErrFenced) || ctx.Err() != nil:
			return nil
		default:
			a.Log.Error("the audit isn't archived; trying again", slog.Any("error", err))
			next, wait = wait, min(2*wait, maxRetryWait)
		}
		sleep(ctx, next)
	}
	return nil
}

// attempt archives all days that are over, if it may archive yet, and records whether that has failed.
func (a *Archiver) attempt(ctx context.Context, fence *int64) (ready bool, err error) {
	if *fence == 0 {
		if *fence, err = a.Table.takeOver(ctx); err != nil {
			return false, err
		}
	}
	within, cancel := context.WithTimeout(ctx, attemptTimeout)
	if ready, err = a.Ready(within); err == nil && ready {
		err = a.archiveDays(within, *fence, time.Now())
	}
	cancel()
	switch {
	case err == nil && !ready:
		return false, nil
	case err == nil:
		a.failingSince.Store(0)
		return true, a.Table.recordSuccess(ctx, *fence)
	case errors.Is(err, ErrFenced) || ctx.Err() != nil:
		return ready, err
	}
	a.failingSince.CompareAndSwap(0, time.Now().UnixMicro())
	return ready, errors.Join(err, a.Table.recordFailure(ctx, *fence, err.Error(), time.Now()))
}

// Failing returns for how long this process has failed to archive the audit; 0 if it hasn't.
func (a *Archiver) Failing() time.Duration {
	since := a.failingSince.Load()
	if since == 0 {
		return 0
	}
	return time.Since(time.UnixMicro(since))
}

// Age returns how long ago the newest archived day ended; known is false if this process doesn't archive, or nothing is
// archived yet.
func (a *Archiver) Age() (age time.Duration, known bool) {
	end := a.newestDayEnd.Load()
	return time.Since(time.UnixMicro(end)), end > 0
}

// archiveDays archives all days that are over.
func (a *Archiver) archiveDays(ctx context.Context, fence int64, now time.Time) error {
	if err := errors.Join(a.Place.Check(ctx), a.Table.deleteArchivedLines(ctx)); err != nil {
		return err
	}
	for {
		f, due, err := a.nextFile(ctx, fence, now)
		if err != nil || !due {
			return err
		}
		if err := a.archive(ctx, fence, f, now); err != nil {
			return fmt.Errorf("archive the audit of %s: %w", f.Day, err)
		}
	}
}

// nextFile returns the file that is to be archived next, and begins it if needed; due is false if there is none.
func (a *Archiver) nextFile(ctx context.Context, fence int64, now time.Time) (f File, due bool, err error) {
	all, err := a.Table.files(ctx, "ORDER BY file DESC LIMIT 1")
	if err != nil {
		return f, false, err
	}
	if len(all) > 0 && all[0].Archived.IsZero() {
		return all[0], true, nil
	}
	last := ""
	if len(all) > 0 {
		last = all[0].Day
		a.newestDayEnd.Store(startOf(last).AddDate(0, 0, 1).UnixMicro())
	}
	over := now.Add(-archiveDelay).AddDate(0, 0, -1).UTC().Format(time.DateOnly) // the newest day that is over
	day := ""
	for _, s := range a.spans(last, over, now) {
		at, err := a.Table.oldest(ctx, s.from, s.to)
		if err != nil {
			return f, false, err
		}
		if at != "" && (day == "" || at[:len(time.DateOnly)] < day) {
			day = at[:len(time.DateOnly)]
		}
	}
	if day == "" {
		return f, false, nil
	}
	if last != "" {
		day = max(day, dayAfter(last)) // a late record goes into the next file
	}
	if day > over {
		return f, false, nil
	}
	f, err = a.Table.begin(ctx, fence, day)
	return f, err == nil, err
}

// spans returns where the records of the file of a day are looked for, if last is the newest archived day: up to the
// end of the day, from a little before the newest archived one; and those that are so late that they are about to
// be deleted from the audit.
func (a *Archiver) spans(last, day string, now time.Time) []span {
	ends := dayAfter(day)
	if last == "" {
		return []span{{to: ends}}
	}
	from := sqldb.FormatTime(startOf(last).Add(-lateRecordWindow))
	oldest := sqldb.FormatTime(now.Add(24*time.Hour - a.RecordLifetime))
	return []span{{from: from, to: ends}, {to: min(from, oldest)}}
}

// archive finishes a file and stores it in its place, unless the place already has it. It returns a
// *ConflictError if the place has a different file with that name.
func (a *Archiver) archive(ctx context.Context, fence int64, f File, now time.Time) error {
	a.Point("archive:begun")
	if f.Hash == "" {
		var err error
		if f, err = a.fill(ctx, fence, f, now); err != nil {
			return err
		}
	}
	a.Point("archive:sealed")
	err := a.compare(ctx, f)
	if errors.Is(err, fs.ErrNotExist) {
		if err = a.put(ctx, f); err == nil {
			a.Point("archive:put")
			err = a.compare(ctx, f)
		}
	}
	if err != nil {
		return err
	}
	if err := a.Table.recordArchived(ctx, fence, f.Number, time.Now()); err != nil {
		return err
	}
	a.Point("archive:recorded")
	a.Log.Info("a day of the audit is archived", slog.String("day", f.Day), slog.Int64("records", f.Lines), slog.String("hash", f.Hash))
	return a.Table.deleteArchivedLines(ctx)
}

// pagePause is the minimum pause after a page, in which others can write. If the page took longer, the pause
// lasts as long as the page.
const pagePause = 5 * time.Millisecond

// fill adds the records of a day to its file, page by page, and ends the file.
func (a *Archiver) fill(ctx context.Context, fence int64, f File, now time.Time) (File, error) {
	last, err := a.Table.newest(ctx)
	if err != nil {
		return f, err
	}
	erased := map[string]string{}
	for _, s := range a.spans(last.Day, f.Day, now) {
		for more := true; more; {
			began := time.Now()
			if s, more, err = a.Table.addRecords(ctx, fence, f, s, erased); err != nil {
				return f, err
			}
			a.Point("archive:page")
			if more {
				sleep(ctx, max(pagePause, time.Since(began)))
			}
		}
	}
	return a.Table.seal(ctx, fence, f)
}

// compare returns nil if the place has the file with the expected lines, fs.ErrNotExist if it does not have the
// file, and a *ConflictError if the file is different.
func (a *Archiver) compare(ctx context.Context, f File) error {
	content, err := a.Place.Open(ctx, nameOf(f.Day))
	if err != nil {
		return err
	}
	w, broken, err := walk(content, f.Day)
	if err = errors.Join(err, content.Close()); err != nil {
		return wrap("read the file back", err)
	}
	if broken != nil || w.lastLine.hash != f.Hash || w.lines != f.Lines {
		return &ConflictError{nameOf(f.Day)}
	}
	return nil
}

// spoolName is the name of the temporary file for a moment. A process that dies right then leaves it to the next one.
const spoolName = "archive.part"

// put writes a file to its place. It is compressed into a temporary file first, which has no name anymore, so that
// nothing of it is left if the process dies.
func (a *Archiver) put(ctx context.Context, f File) (err error) {
	packed, err := os.OpenFile(filepath.Join(a.Spool, spoolName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return wrap("compress the file", err)
	}
	defer func() { err = errors.Join(err, packed.Close()) }()
	if err := os.Remove(packed.Name()); err != nil {
		return wrap("compress the file", err)
	}
	to := gzip.NewWriter(packed)
	err = a.Table.lines(ctx, f.Number, func(line string) error {
		_, err := io.WriteString(to, line+"\n")
		return err
	})
	if err = errors.Join(err, to.Close()); err != nil {
		return wrap("compress the file", err)
	}
	size, err := packed.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = packed.Seek(0, io.SeekStart)
	}
	if err != nil {
		return wrap("compress the file", err)
	}
	return a.Place.Put(ctx, nameOf(f.Day), packed, size)
}

// nextDue returns when the next day is over long enough to be archived.
func nextDue(now time.Time) time.Time {
	return startOf(now.Add(-archiveDelay).UTC().Format(time.DateOnly)).AddDate(0, 0, 1).Add(archiveDelay)
}

// startOf returns the beginning of a day.
func startOf(day string) time.Time {
	at, _ := time.Parse(time.DateOnly, day) // it was formatted by this package, or by the database
	return at
}

func dayAfter(day string) string { return startOf(day).AddDate(0, 0, 1).Format(time.DateOnly) }

// sleep waits, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(max(0, d))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
