package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"modernc.org/sqlite"
)

const (
	// fileLockTimeout limits how long a snapshot waits for the lock of one file while it holds the locks of
	// others. Writers of those files wait meanwhile, and give up after ten seconds.
	fileLockTimeout       = 500 * time.Millisecond
	fileLockRetryInterval = 500 * time.Microsecond
	// copyPages is how many pages are copied at once: 4 MB, or 16 MB of a file with larger pages.
	copyPages = 4096
)

// A Copy names a file (From) and the file that it is copied to (To).
type Copy struct {
	From, To string
	Progress func(done, of int) // called with how many pages are copied, and how many there are; may be nil
}

// Snapshot copies SQLite files, each to one that must not exist, readable by its owner alone. All copies
// are of the same instant, although this and other processes go on writing to the files: together they
// are what a power cut at that instant would have left.
func Snapshot(ctx context.Context, copies ...Copy) (err error) {
	var sources []*copiedFile
	defer func() {
		for _, s := range sources {
			err = errors.Join(err, s.pool.Close())
		}
	}()
	for _, c := range copies {
		s, err := openCopiedFile(ctx, c)
		if s != nil {
			sources = append(sources, s)
		}
		if err != nil {
			return fmt.Errorf("snapshot of %s: %w", c.From, err)
		}
	}
	for {
		done, err := freeze(ctx, sources)
		if err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
		if done {
			break
		}
		select {
		case <-time.After(10 * time.Millisecond): // let the writers through
		case <-ctx.Done():
			return fmt.Errorf("snapshot: %w", ctx.Err())
		}
	}
	for _, s := range sources {
		if err := s.copy(ctx); err != nil {
			return fmt.Errorf("snapshot of %s: %w", s.From, err)
		}
	}
	return nil
}

// A copiedFile is a file that Snapshot copies. It has a connection that locks out the file's
// writers for a moment, and one whose read transaction begins in that moment.
type copiedFile struct {
	Copy
	pool               *sql.DB
	lockConn, readConn *sql.Conn
}

func openCopiedFile(ctx context.Context, c Copy) (*copiedFile, error) {
	if _, err := os.Stat(c.From); err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", dsn(c.From))
	if err != nil {
		return nil, err
	}
	s := &copiedFile{Copy: c, pool: pool}
	if s.lockConn, err = pool.Conn(ctx); err != nil {
		return s, err
	}
	if s.readConn, err = pool.Conn(ctx); err != nil {
		return s, err
	}
	_, err = s.lockConn.ExecContext(ctx, "PRAGMA busy_timeout = 0")
	return s, err
}

// freeze keeps all writers of the files waiting until the read transactions have begun, so that these see
// the same instant. It returns false if it did not get one of the locks in time.
func freeze(ctx context.Context, sources []*copiedFile) (done bool, err error) {
	var locked []*copiedFile
	defer func() {
		for _, s := range locked {
			if _, undo := s.lockConn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); undo != nil {
				err = errors.Join(err, undo)
			}
		}
	}()
	for _, s := range sources {
		ok, err := s.lockWriters(ctx)
		if err != nil || !ok {
			return false, err
		}
		locked = append(locked, s)
	}
	for _, s := range sources {
		// BEGIN alone does not begin to read; the first query does.
		var tables int
		if _, err := s.readConn.ExecContext(ctx, "BEGIN"); err != nil {
			return false, err
		}
		if err := s.readConn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
			return false, err
		}
	}
	return true, nil
}

// lockWriters takes the lock that writers take for each commit; false if it did not get it within
// fileLockTimeout. Between two commits it is free for a moment only, so lockWriters tries often.
func (s *copiedFile) lockWriters(ctx context.Context) (bool, error) {
	deadline := time.Now().Add(fileLockTimeout)
	for {
		_, err := s.lockConn.ExecContext(ctx, "BEGIN IMMEDIATE")
		if err == nil {
			return true, nil
		}
		if !isBusy(err) {
			return false, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-time.After(fileLockRetryInterval):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// isBusy reports whether an error says that another connection holds SQLite's lock.
func isBusy(err error) bool {
	const busy = 5 // SQLITE_BUSY; the higher bits give details
	code, ok := resultCode(err)
	return ok && code&0xff == busy
}

// copy copies the file as it was when its read transaction began.
func (s *copiedFile) copy(ctx context.Context) error {
	f, err := os.OpenFile(s.To, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return s.readConn.Raw(func(dc any) error {
		b, err := dc.(interface {
			NewBackup(to string) (*sqlite.Backup, error)
		}).NewBackup(fileURI(s.To))
		if err != nil {
			return err
		}
		for more := true; more && err == nil; {
			if err = ctx.Err(); err == nil {
				more, err = b.Step(copyPages)
			}
			if err == nil && s.Progress != nil {
				s.Progress(b.PageCount()-b.Remaining(), b.PageCount())
			}
		}
		return errors.Join(err, b.Finish())
	})
}
