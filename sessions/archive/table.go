package archive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/sessions/sqldb"
)

// Migration is the SQL that adds the tables, and the column that says in which file a record of the audit is; {bytes} is
// replaced by a text type that sorts by bytes. Times are microseconds since 1970; 0 means none.
const Migration = `
ALTER TABLE audit ADD COLUMN archived BIGINT NOT NULL DEFAULT 0; -- the number of its file; 0 for none
CREATE TABLE audit_archive (
	id      BIGINT PRIMARY KEY, -- 1: there is one archive
	wanted  BIGINT NOT NULL,    -- 1: records stay until they are archived
	since   BIGINT NOT NULL,    -- since when that has been so, or not
	fence   BIGINT NOT NULL,    -- of the process that archives
	n       BIGINT NOT NULL,    -- the number of the last line
	hash    TEXT NOT NULL,      -- of that line
	failing BIGINT NOT NULL,    -- since when archiving has failed
	problem TEXT NOT NULL       -- why
);
CREATE TABLE audit_files (
	file     BIGINT PRIMARY KEY,
	day      TEXT NOT NULL,
	lines    BIGINT NOT NULL,   -- how many records it has
	hash     TEXT NOT NULL,     -- of its last line; empty while lines are added
	archived BIGINT NOT NULL    -- when it was read back from the archive
);
CREATE TABLE audit_lines (      -- of files that are not archived yet
	n    BIGINT PRIMARY KEY,
	file BIGINT NOT NULL,
	line TEXT NOT NULL
);
CREATE TABLE audit_keys (       -- of pseudonyms
	kind    TEXT NOT NULL,      -- person or session
	subject {bytes} NOT NULL,
	secret  TEXT NOT NULL,
	PRIMARY KEY (kind, subject)
);
`

// Deletable is an SQL condition for those records of the audit that may be deleted: all that are archived, and all
// records if there is no archive. Refusals are never archived.
const Deletable = `(kind = 'refusal' OR NOT EXISTS (SELECT 1 FROM audit_archive WHERE wanted = 1)
	OR archived > 0 AND archived <= (SELECT coalesce(max(file), 0) FROM audit_files WHERE archived > 0))`

// A Table stores the state of the archive, in the database that has the audit.
type Table struct{ DB *sqldb.DB }

// A File is a file of the archive, as the database knows it.
type File struct {
	Number   int64     `json:"number"`
	Day      string    `json:"day"`
	Lines    int64     `json:"lines"` // how many records it has
	Hash     string    `json:"hash"`  // of its last line; empty while lines are added
	Archived time.Time `json:"archived,omitzero"`
}

// A State is the state of the archive.
type State struct {
	Wanted  bool      // whether the settings name an archive
	Newest  File      // the newest file that is archived; the zero File if there is none
	Failing time.Time // since when archiving has failed; the zero time if it hasn't
	Problem string
	// Overdue is the time of the oldest record that should be archived by now, and isn't, whether anything has failed or
	// nobody archives; the zero time if there is none.
	Overdue time.Time
}

// Want records whether the settings name an archive. While they do, records stay in the audit until they are archived.
func (t Table) Want(ctx context.Context, wanted bool) error {
	var is int64
	err := t.DB.Read.QueryRowContext(ctx, "SELECT wanted FROM audit_archive WHERE id = 1").Scan(&is)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	if err != nil || wanted == (is == 1) {
		return wrap("look whether the audit is archived", err)
	}
	if wanted {
		is = 1
	} else {
		is = 0
	}
	_, err = t.DB.Exec(ctx, `INSERT INTO audit_archive (id, wanted, since, fence, n, hash, failing, problem) VALUES (1, ?, ?, 0, 0, '', 0, '')
		ON CONFLICT (id) DO UPDATE SET wanted = excluded.wanted, since = excluded.since`, is, time.Now().UnixMicro())
	return wrap("record whether the audit is archived", err)
}

// State returns the state of the archive.
func (t Table) State(ctx context.Context) (s State, err error) {
	var since, failing int64
	err = t.DB.Read.QueryRowContext(ctx, "SELECT wanted = 1, since, failing, problem FROM audit_archive WHERE id = 1").Scan(&s.Wanted, &since, &failing, &s.Problem)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err == nil {
		s.Newest, err = t.newest(ctx)
	}
	if err == nil && s.Wanted {
		s.Overdue, err = t.overdue(ctx, s.Newest, time.UnixMicro(since), time.Now())
	}
	if failing > 0 {
		s.Failing = time.UnixMicro(failing)
	}
	return s, wrap("look how the archive does", err)
}

// MaxArchivingTime is how long archiving may take, after the end of a day, or after it began or went on.
const MaxArchivingTime = 4 * time.Hour

// overdue returns the time of the oldest record that should be archived by now, or the zero time. since is since when
// the audit is archived.
func (t Table) overdue(ctx context.Context, newest File, since, now time.Time) (at time.Time, err error) {
	from, recent := "", now.Add(-MaxArchivingTime)
	if since.After(recent) || newest.Archived.After(recent) {
		return at, nil
	}
	if newest.Day != "" {
		from = dayAfter(newest.Day)
	}
	var text string
	const next = "SELECT at FROM audit WHERE kind <> 'refusal' AND at >= ? AND at < ? ORDER BY at LIMIT 1"
	err = t.DB.Read.QueryRowContext(ctx, next, from, sqldb.FormatTime(recent.AddDate(0, 0, -1))).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return at, nil
	}
	if err != nil {
		return at, err
	}
	return sqldb.ParseTime(text)
}

// newest returns the newest file that is archived.
func (t Table) newest(ctx context.Context) (File, error) {
	all, err := t.files(ctx, "WHERE archived > 0 ORDER BY file DESC LIMIT 1")
	if err != nil || len(all) == 0 {
		return File{}, err
	}
	return all[0], nil
}

// Files returns all files, in order. The last one may not be archived yet.
func (t Table) Files(ctx context.Context) ([]File, error) { return t.files(ctx, "ORDER BY file") }

func (t Table) files(ctx context.Context, which string) (all []File, err error) {
	all, err = scanFiles(t.DB.Read.QueryContext(ctx, selectFiles+which))
	return all, wrap("list the files of the archive", err)
}

const selectFiles = "SELECT file, day, lines, hash, archived FROM audit_files "

// scanFiles reads the result of a query that begins with selectFiles, and closes it.
func scanFiles(rows *sql.Rows, failed error) (all []File, err error) {
	if failed != nil {
		return nil, failed
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var f File
		var archived int64
		if err := rows.Scan(&f.Number, &f.Day, &f.Lines, &f.Hash, &archived); err != nil {
			return nil, err
		}
		if archived > 0 {
			f.Archived = time.UnixMicro(archived)
		}
		all = append(all, f)
	}
	return all, rows.Err()
}

// takeOver makes this process the one that archives: those before it can no longer change anything.
func (t Table) takeOver(ctx context.Context) (fence int64, err error) {
	err = t.DB.Get(ctx, "UPDATE audit_archive SET fence = fence + 1 WHERE id = 1 RETURNING fence", nil, &fence)
	return fence, wrap("take over the archive", err)
}

// write runs a transaction of the process that archives. chain is the last line.
func (t Table) write(ctx context.Context, fence int64, fn func(tx *sqldb.Tx, chain *position) error) error {
	return t.DB.Write(ctx, func(tx *sqldb.Tx) error {
		var p position
		// The update changes nothing but locks the row: another process waits.
		err := tx.Get("UPDATE audit_archive SET fence = fence WHERE id = 1 AND fence = ? RETURNING n, hash", []any{fence}, &p.lines, &p.hash)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrFenced
		}
		if err != nil {
			return err
		}
		was := p
		if err := fn(tx, &p); err != nil || p == was {
			return err
		}
		_, err = tx.Exec("UPDATE audit_archive SET n = ?, hash = ? WHERE id = 1", p.lines, p.hash)
		return err
	})
}

// recordArchived records that a file was read back from the archive.
func (t Table) recordArchived(ctx context.Context, fence, file int64, now time.Time) error {
	return t.write(ctx, fence, func(tx *sqldb.Tx, _ *position) error {
		_, err := tx.Exec("UPDATE audit_files SET archived = ? WHERE file = ?", now.UnixMicro(), file)
		return err
	})
}

// linesPerWrite is how many lines or records one transaction handles.
const linesPerWrite = 200

// deleteArchivedLines deletes the lines of archived files.
func (t Table) deleteArchivedLines(ctx context.Context) error {
	for {
		n, err := t.DB.Exec(ctx, `DELETE FROM audit_lines WHERE n IN
			(SELECT n FROM audit_lines WHERE file <= (SELECT coalesce(max(file), 0) FROM audit_files WHERE archived > 0) ORDER BY n LIMIT ?)`, linesPerWrite)
		if err != nil || n < linesPerWrite {
			return wrap("delete lines that are archived", err)
		}
	}
}

// lines calls each with the lines of a file, in order.
func (t Table) lines(ctx context.Context, file int64, each func(line string) error) error {
	for after, more := int64(0), true; more; {
		page, last, err := t.page(ctx, file, after)
		if err != nil {
			return wrap("read the lines of a file", err)
		}
		for _, line := range page {
			if err := each(line); err != nil {
				return err
			}
		}
		after, more = last, len(page) == linesPerWrite
	}
	return nil
}

// page returns the lines of a file after the number after, and the last one's number.
func (t Table) page(ctx context.Context, file, after int64) (page []string, last int64, err error) {
	rows, err := t.DB.Read.QueryContext(ctx, "SELECT n, line FROM audit_lines WHERE n > ? AND file = ? ORDER BY n LIMIT ?", after, file, linesPerWrite)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var line string
		if err := rows.Scan(&last, &line); err != nil {
			return nil, 0, err
		}
		page = append(page, line)
	}
	return page, last, rows.Err()
}

// recordFailure records that archiving has failed, and why.
func (t Table) recordFailure(ctx context.Context, fence int64, problem string, now time.Time) error {
	_, err := t.DB.Exec(ctx, `UPDATE audit_archive SET problem = ?, failing = CASE WHEN failing = 0 THEN ? ELSE failing END
		WHERE id = 1 AND fence = ?`, sqldb.Text(strings.ReplaceAll(problem, "\n", "; ")), now.UnixMicro(), fence)
	return wrap("record that archiving has failed", err)
}

// recordSuccess records that archiving works.
func (t Table) recordSuccess(ctx context.Context, fence int64) error {
	_, err := t.DB.Exec(ctx, "UPDATE audit_archive SET problem = '', failing = 0 WHERE id = 1 AND fence = ? AND failing > 0", fence)
	return wrap("record that archiving works", err)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
