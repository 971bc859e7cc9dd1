package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/sessions"
	"parley/sessions/archive"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// auditTable creates the table of audit records. A missing text is stored as "".
const auditTable = `
CREATE TABLE audit (
	id         {id} PRIMARY KEY,
	at         TEXT NOT NULL,
	kind       TEXT NOT NULL,
	person     TEXT NOT NULL,    -- who did it
	agent      TEXT NOT NULL,
	session    {bytes} NOT NULL, -- its key
	turn       TEXT NOT NULL,
	call       TEXT NOT NULL,
	tool       TEXT NOT NULL,
	arguments  TEXT NOT NULL,    -- JSON; empty once they are erased
	verdict    TEXT NOT NULL,
	result     TEXT NOT NULL,
	exit_code  TEXT NOT NULL,
	bytes      BIGINT NOT NULL,
	elapsed_ms BIGINT NOT NULL,
	detail     TEXT NOT NULL
);

CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_session ON audit (session) WHERE arguments <> '';
CREATE INDEX audit_person ON audit (person) WHERE person <> '';
`

const auditColumns = "at, kind, person, agent, session, turn, call, tool, arguments, verdict, result, exit_code, bytes, elapsed_ms, detail"

// audits stores the audit records.
type audits struct{ db *sqldb.DB }

// Audit stores a record; see [sessions.Auditor]. It leaves out the arguments if there is no such
// session, because it may have been erased meanwhile.
func (s *audits) Audit(ctx context.Context, r sessions.AuditRecord) error {
	if _, err := s.db.Group(ctx, insertAudit, auditArgs(r)); err != nil {
		return fmt.Errorf("keep an audit record: %w", err)
	}
	return nil
}

// AuditSoon stores a record; see [sessions.SoonAuditor].
func (s *audits) AuditSoon(ctx context.Context, r sessions.AuditRecord) error {
	if s.db.IsPostgres() {
		return s.Audit(ctx, r)
	}
	args := auditArgs(r)
	err := s.db.Soon(ctx, auditFlushTime, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(insertAudit, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep an audit record: %w", err)
	}
	return nil
}

// auditFlushTime is how long a record of AuditSoon may wait for a disk flush that it can share.
const auditFlushTime = 20 * time.Millisecond

const insertAudit = `
	INSERT INTO audit (` + auditColumns + `)
	SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
		CASE WHEN EXISTS (SELECT 1 FROM sessions WHERE key = ?) THEN CAST(? AS TEXT) ELSE '' END,
		CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS TEXT)`

// auditArgs returns a record as the arguments of insertAudit.
func auditArgs(r sessions.AuditRecord) []any {
	code := ""
	if r.ExitCode != nil {
		code = strconv.Itoa(*r.ExitCode)
	}
	key := sqldb.Text(r.Session)
	return []any{
		sqldb.FormatTime(r.At), r.Kind, sqldb.Text(r.By), sqldb.Text(r.Agent), key, sqldb.Text(r.Turn), sqldb.Text(r.Call), sqldb.Text(r.Tool),
		key, sqldb.Text(string(r.Arguments)), r.Verdict, r.Result, code, r.Bytes, r.Elapsed, sqldb.Text(r.Detail),
	}
}

// AuditRecords reads records; see [sessions.Auditor].
func (s *audits) AuditRecords(ctx context.Context, q sessions.AuditQuery) (list []sessions.AuditRecord, err error) {
	query, args := auditQuery(q)
	found, err := s.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read audit records: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		r, err := scanAudit(found.Scan)
		if err != nil {
			return nil, fmt.Errorf("read audit records: %w", err)
		}
		list = append(list, r)
	}
	return list, found.Err()
}

// auditQuery returns a query as SQL. It contains only the conditions that are set, so that an index can
// serve it.
func auditQuery(q sessions.AuditQuery) (query string, args []any) {
	query = "SELECT id, " + auditColumns + ", used, address, messages, refused FROM audit WHERE id > ?"
	args = []any{q.After}
	also := func(condition string, arg any) { query, args = query+" AND "+condition, append(args, arg) }
	switch q.Kind {
	case "":
	case sessions.AuditRefusal:
		query += " AND kind = 'refusal'" // the condition of the index of refusals
	default:
		also("kind = ?", q.Kind)
	}
	if q.Session != "" {
		also("session = ? AND session <> ''", sqldb.Text(q.Session))
	}
	if q.Message != "" {
		query, args = query+" AND kind = 'refusal' AND (messages LIKE ? ESCAPE '!')", append(args, messagePattern(q.Message))
	}
	if q.Place != "" {
		query, args = query+" AND kind = 'refusal' AND (address = ? OR address >= ? AND address < ?)", append(args, sqldb.Text(q.Place), sqldb.Text(q.Place+"/"), sqldb.Text(q.Place+"0")) // "0" follows "/" in the sort order
	}
	if q.Person != "" {
		also("person = ? AND person <> ''", sqldb.Text(q.Person))
	}
	if !q.Since.IsZero() {
		also("at >= ?", sqldb.FormatTime(q.Since))
	}
	if q.Before > 0 {
		also("id < ?", q.Before)
	}
	query += " ORDER BY id"
	if q.Newest {
		query += " DESC"
	}
	return query + " LIMIT ?", append(args, max(0, q.Limit))
}

// messagePattern returns a pattern that matches the column messages if it contains the id of a message.
func messagePattern(id string) string {
	quoted, err := plainjson.Marshal(id)
	if err != nil {
		return "" // cannot happen: every text can be encoded
	}
	return "%" + strings.NewReplacer("!", "!!", "%", "!%", "_", "!_").Replace(sqldb.Text(string(quoted))) + "%"
}

// scanAudit reads a record's row.
func scanAudit(scan func(dest ...any) error) (r sessions.AuditRecord, err error) {
	var at, arguments, code, used, messages string
	err = scan(&r.ID, &at, &r.Kind, &r.By, &r.Agent, &r.Session, &r.Turn, &r.Call, &r.Tool,
		&arguments, &r.Verdict, &r.Result, &code, &r.Bytes, &r.Elapsed, &r.Detail, &used, &r.Address, &messages, &r.Count)
	if err != nil {
		return r, err
	}
	for _, text := range []*string{&r.By, &r.Agent, &r.Session, &r.Turn, &r.Call, &r.Tool, &r.Detail, &r.Address, &arguments, &used} {
		*text = sqldb.Untext(*text)
	}
	if r.At, err = sqldb.ParseTime(at); err != nil {
		return r, err
	}
	if json.Valid([]byte(arguments)) {
		r.Arguments = json.RawMessage(arguments)
	}
	if used != "" {
		if err := json.Unmarshal([]byte(used), &r.Used); err != nil {
			return r, err
		}
	}
	if r.Messages, err = readRefused(messages); err != nil {
		return r, err
	}
	if code != "" {
		n, err := strconv.Atoi(code)
		if err != nil {
			return r, err
		}
		r.ExitCode = &n
	}
	return r, nil
}

// These delete records from before a time, and empty the arguments of those that stay because they are not archived
// yet; see inBatches.
const (
	deleteOldAudit    = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ? AND " + archive.Deletable + " ORDER BY at LIMIT ?)"
	emptyOldArguments = "UPDATE audit SET arguments = '' WHERE id IN (SELECT id FROM audit WHERE at < ? AND arguments <> '' ORDER BY at LIMIT ?)"
)

// DropAudit deletes old records; see [sessions.Auditor].
func (s *audits) DropAudit(ctx context.Context, before time.Time) (int64, error) {
	n, err := s.dropBefore(ctx, nil, sqldb.FormatTime(before))
	if err != nil {
		return 0, fmt.Errorf("delete old audit records: %w", err)
	}
	return n, nil
}

// dropBefore deletes the records from before a time, and returns how many. Those that are not archived yet only lose
// their arguments. after, if set, is called in each transaction.
func (s *audits) dropBefore(ctx context.Context, after func(*sqldb.Tx) error, at string) (int64, error) {
	n, err := inBatches(ctx, s.db, after, deleteOldAudit, at)
	if err == nil {
		_, err = inBatches(ctx, s.db, after, emptyOldArguments, at)
	}
	return n, err
}

// anonymizeAudit removes a person, and the arguments of what they did, from all records, deletes the records of their
// refused messages, and lets nobody tell anymore which lines of the archive are about the person.
func (s *audits) anonymizeAudit(ctx context.Context, person string) error {
	if _, err := inBatches(ctx, s.db, schedulePurge, "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE kind = 'refusal' AND person = ? AND person <> '' LIMIT ?)", person); err != nil {
		return err
	}
	for _, query := range []string{
		"UPDATE audit SET person = '', arguments = '' WHERE id IN (SELECT id FROM audit WHERE person = ? AND person <> '' LIMIT ?)",
		"UPDATE audit SET detail = '' WHERE id IN (SELECT id FROM audit WHERE detail = ? AND detail <> '' LIMIT ?)",
	} {
		if _, err := inBatches(ctx, s.db, schedulePurge, query, person); err != nil {
			return err
		}
	}
	return s.db.Write(ctx, func(tx *sqldb.Tx) error {
		n, err := archive.ForgetPerson(tx, sqldb.Untext(person))
		if err != nil || n == 0 {
			return err
		}
		return schedulePurge(tx)
	})
}
