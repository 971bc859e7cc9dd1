package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/sessions"
	"parley/sessions/purges"
	"parley/sessions/sqldb"
)

var _ interface {
	sessions.Auditor
	sessions.SoonAuditor
} = (*Store)(nil)

// auditTable creates the table of audit records. An absent text is the empty one.
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

// Audit stores a record; see [sessions.Auditor]. It leaves out the arguments if the
// session was erased meanwhile.
func (s *Store) Audit(ctx context.Context, r sessions.AuditRecord) error {
	if _, err := s.db.Group(ctx, insertAudit, auditArgs(r)); err != nil {
		return fmt.Errorf("keep an audit record: %w", err)
	}
	return nil
}

// AuditSoon stores a record; see [sessions.SoonAuditor].
func (s *Store) AuditSoon(ctx context.Context, r sessions.AuditRecord) error {
	if s.db.Postgres() {
		return s.Audit(ctx, r)
	}
	args := auditArgs(r)
	err := s.db.Soon(ctx, auditWithin, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(insertAudit, args...)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep an audit record: %w", err)
	}
	return nil
}

// auditWithin is how long a record of AuditSoon waits for a flush that it shares.
const auditWithin = 20 * time.Millisecond

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
		formatTime(r.At), r.Kind, sqldb.Text(r.By), sqldb.Text(r.Agent), key, sqldb.Text(r.Turn), sqldb.Text(r.Call), sqldb.Text(r.Tool),
		key, sqldb.Text(string(r.Arguments)), r.Verdict, r.Result, code, r.Bytes, r.Elapsed, sqldb.Text(r.Detail),
	}
}

// AuditRecords reads records; see [sessions.Auditor].
func (s *Store) AuditRecords(ctx context.Context, kind string, after int64, limit int) (list []sessions.AuditRecord, err error) {
	found, err := s.db.Read.QueryContext(ctx, `SELECT id, `+auditColumns+` FROM audit
		WHERE id > ? AND (? = '' OR kind = ?) ORDER BY id LIMIT ?`, after, kind, kind, max(0, limit))
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

// scanAudit reads a record's row.
func scanAudit(scan func(dest ...any) error) (r sessions.AuditRecord, err error) {
	var at, arguments, code string
	err = scan(&r.ID, &at, &r.Kind, &r.By, &r.Agent, &r.Session, &r.Turn, &r.Call, &r.Tool,
		&arguments, &r.Verdict, &r.Result, &code, &r.Bytes, &r.Elapsed, &r.Detail)
	if err != nil {
		return r, err
	}
	for _, text := range []*string{&r.By, &r.Agent, &r.Session, &r.Turn, &r.Call, &r.Tool, &r.Detail, &arguments} {
		*text = sqldb.Untext(*text)
	}
	if r.At, err = time.Parse(stampLayout, at); err != nil {
		return r, err
	}
	if json.Valid([]byte(arguments)) {
		r.Arguments = json.RawMessage(arguments)
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

// DropAudit deletes old records; see [sessions.Auditor].
func (s *Store) DropAudit(ctx context.Context, before time.Time) (int64, error) {
	n, err := s.db.Exec(ctx, "DELETE FROM audit WHERE at < ?", formatTime(before))
	if err != nil {
		return 0, fmt.Errorf("delete old audit records: %w", err)
	}
	return n, nil
}

// redactAudit empties the arguments in the session's audit records: in those of one turn, or for ""
// in all. The records themselves stay.
func (p *sessionErasure) redactAudit(turn string) error {
	n, err := p.tx.Exec("UPDATE audit SET arguments = '' WHERE session = ? AND arguments <> '' AND (? = '' OR turn = ?)", p.key, turn, turn)
	p.redacted += n
	return err
}

// anonymiseAudit removes a person, and the arguments of what they have done, from all
// records.
func anonymiseAudit(tx *sqldb.Tx, person string) error {
	did, err := tx.Exec("UPDATE audit SET person = '', arguments = '' WHERE person = ? AND person <> ''", person)
	if err != nil {
		return err
	}
	concerned, err := tx.Exec("UPDATE audit SET detail = '' WHERE detail = ?", person)
	if err != nil || did+concerned == 0 {
		return err
	}
	return purges.Schedule(tx)
}
