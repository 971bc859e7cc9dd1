package archive

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// A position is the last line of the chain.
type position struct {
	lines int64
	hash  string
}

// next returns the link that the next line must have.
func (p position) next() link { return link{Prev: p.hash, N: p.lines + 1} }

// add stores the next line, of a file. Line must have the link that next has returned.
func (p *position) add(tx *sqldb.Tx, file int64, line any) error {
	raw, err := plainjson.Marshal(line)
	if err != nil {
		return wrap("encode a line", err)
	}
	if _, err := tx.Exec("INSERT INTO audit_lines (n, file, line) VALUES (?, ?, ?)", p.lines+1, file, string(raw)); err != nil {
		return err
	}
	p.lines, p.hash = p.lines+1, hashOf(raw)
	return nil
}

// begin begins the file of a day, unless there is one that is not archived yet. It returns the file.
func (t Table) begin(ctx context.Context, fence int64, day string) (f File, err error) {
	err = t.write(ctx, fence, func(tx *sqldb.Tx, chain *position) error {
		last, err := lastFile(tx)
		if err != nil {
			return err
		}
		if last.Number > 0 && last.Archived.IsZero() {
			f = last
			return nil
		}
		f = File{Number: last.Number + 1, Day: day}
		if _, err := tx.Exec("INSERT INTO audit_files (file, day, lines, hash, archived) VALUES (?, ?, 0, '', 0)", f.Number, day); err != nil {
			return err
		}
		return chain.add(tx, f.Number, header{link: chain.next(), Format: lineVersion, File: f.Number, Day: day, After: last.Day})
	})
	return f, wrap("begin a file of the archive", err)
}

// lastFile returns the newest file, or the zero File.
func lastFile(tx *sqldb.Tx) (f File, err error) {
	all, err := scanFiles(tx.Query(selectFiles + "ORDER BY file DESC LIMIT 1"))
	if err != nil || len(all) == 0 {
		return f, err
	}
	return all[0], nil
}

// A span is a period in which records are looked for, with from and to in the form of the database, to
// excluded. Of the records at from itself, only those with ids greater than after are looked for.
type span struct {
	from, to string
	after    int64
}

// addRecords adds the next records in a span to a file, as lines, and returns the rest of the span; more is false if there
// was nothing left in it. erased is for the pseudonyms of all pages.
func (t Table) addRecords(ctx context.Context, fence int64, f File, s span, erased map[string]string) (rest span, more bool, err error) {
	err = t.write(ctx, fence, func(tx *sqldb.Tx, chain *position) error {
		rest = s
		if err := t.lockSessions(tx, s); err != nil {
			return err
		}
		page, err := t.unarchived(tx, s)
		if more = len(page) > 0; err != nil || !more {
			return err
		}
		names := &pseudonyms{tx: tx, postgres: t.DB.IsPostgres(), known: map[[2]string]string{}, erased: erased}
		ids := make([]any, 0, len(page)+1)
		ids = append(ids, f.Number)
		for _, r := range page {
			line, err := lineOf(names, r)
			if err != nil {
				return err
			}
			line.link = chain.next()
			if err := chain.add(tx, f.Number, line); err != nil {
				return err
			}
			ids = append(ids, r.ID)
		}
		last := page[len(page)-1]
		rest.from, rest.after = sqldb.FormatTime(last.At), last.ID
		if _, err := tx.Exec("UPDATE audit SET archived = ? WHERE id IN (?"+strings.Repeat(", ?", len(page)-1)+")", ids...); err != nil {
			return err
		}
		_, err = tx.Exec("UPDATE audit_files SET lines = lines + ? WHERE file = ?", len(page), f.Number)
		return err
	})
	return rest, more, wrap("write records as lines", err)
}

// seal ends a file and returns it.
func (t Table) seal(ctx context.Context, fence int64, f File) (File, error) {
	err := t.write(ctx, fence, func(tx *sqldb.Tx, chain *position) error {
		last, err := lastFile(tx)
		if err != nil || last.Hash != "" {
			f = last
			return err
		}
		if err := chain.add(tx, f.Number, trailer{link: chain.next(), End: f.Day, Lines: last.Lines}); err != nil {
			return err
		}
		f.Lines, f.Hash = last.Lines, chain.hash
		_, err = tx.Exec("UPDATE audit_files SET hash = ? WHERE file = ?", f.Hash, f.Number)
		return err
	})
	return f, wrap("end a file of the archive", err)
}

// unarchivedRecords is an SQL condition for the records that have no line yet.
const unarchivedRecords = "archived = 0 AND kind <> 'refusal'"

// lockSessions locks on PostgreSQL the sessions of the next records in a span, so that they can't be erased before their
// pseudonyms are made. An erasure locks its session before the records, too, so that neither waits for the other.
func (t Table) lockSessions(tx *sqldb.Tx, s span) error {
	if !t.DB.IsPostgres() {
		return nil
	}
	// KEY SHARE is what a foreign key takes: the session can be written to meanwhile.
	_, err := tx.Exec(`SELECT 1 FROM sessions WHERE key IN (SELECT session COLLATE "C" FROM audit`+nextRecords+`) ORDER BY key FOR KEY SHARE`, s.args()...)
	return err
}

// nextRecords is the SQL for the next records in a span; args are its arguments.
const nextRecords = " WHERE " + unarchivedRecords + " AND at >= ? AND at < ? AND (at > ? OR id > ?) ORDER BY at, id LIMIT ?"

func (s span) args() []any { return []any{s.from, s.to, s.from, s.after, linesPerWrite} }

// unarchived returns the next records in a span. On PostgreSQL it locks them, so that an erasure waits: it deletes the keys
// after the names.
func (t Table) unarchived(tx *sqldb.Tx, s span) (page []sessions.AuditRecord, err error) {
	query := `SELECT id, at, kind, person, agent, session, turn, call, tool, verdict, result, exit_code, bytes, elapsed_ms, detail, used FROM audit` + nextRecords
	if t.DB.IsPostgres() {
		query += " FOR UPDATE"
	}
	rows, err := tx.Query(query, s.args()...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		r, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		page = append(page, r)
	}
	return page, rows.Err()
}

// scan reads the row of a record, without its arguments.
func scan(into func(dest ...any) error) (r sessions.AuditRecord, err error) {
	var at, code, used string
	if err := into(&r.ID, &at, &r.Kind, &r.By, &r.Agent, &r.Session, &r.Turn, &r.Call, &r.Tool, &r.Verdict, &r.Result, &code, &r.Bytes, &r.Elapsed, &r.Detail, &used); err != nil {
		return r, err
	}
	for _, text := range []*string{&r.By, &r.Agent, &r.Session, &r.Turn, &r.Call, &r.Tool, &r.Detail, &used} {
		*text = sqldb.Untext(*text)
	}
	if r.At, err = sqldb.ParseTime(at); err != nil {
		return r, err
	}
	if used != "" {
		if err := json.Unmarshal([]byte(used), &r.Used); err != nil {
			return r, err
		}
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

// lineOf returns the line of a record, without its link.
func lineOf(names *pseudonyms, r sessions.AuditRecord) (l record, err error) {
	l = record{
		ID: r.ID, At: r.At.UTC(), Kind: codeOrEmpty(r.Kind), Agent: codeOrEmpty(r.Agent), Tool: codeOrEmpty(r.Tool), Verdict: codeOrEmpty(r.Verdict),
		Result: codeOrEmpty(strings.ReplaceAll(r.Result, " ", "_")), ExitCode: r.ExitCode, Bytes: r.Bytes, Elapsed: r.Elapsed,
	}
	if r.Used != nil {
		used := *r.Used
		used.Model = codeOrEmpty(used.Model)
		l.Used = &used
	}
	if l.By, err = names.person(r.By); err != nil {
		return l, err
	}
	if l.Session, err = names.session(r.Session); err != nil {
		return l, err
	}
	if l.Turn, err = names.within(r.Session, r.By, r.Turn); err != nil {
		return l, err
	}
	if l.Call, err = names.within(r.Session, r.By, r.Call); err != nil {
		return l, err
	}
	l.Detail, err = detailOf(names, r)
	return l, err
}

// detailOf returns what a line contains in place of a record's detail, which may be the id of anything: only
// codes are left unchanged. For the record that a person was forgotten, it does not name the person.
func detailOf(names *pseudonyms, r sessions.AuditRecord) (string, error) {
	switch {
	case r.Kind == sessions.AuditForget:
		return "", nil
	case r.Kind == sessions.AuditTurn, r.Kind == sessions.AuditTool && (r.Detail == sessions.DetailJudged || r.Detail == sessions.DetailRateLimited):
		return codeOrEmpty(r.Detail), nil
	case slices.Contains([]string{sessions.AuditTool, sessions.AuditPairing, sessions.AuditMemory}, r.Kind) && strings.Count(r.Detail, ":") == 1:
		return names.person(r.Detail)
	}
	return names.within(r.Session, r.By, r.Detail)
}

// oldest returns the time of the oldest record that has no line yet and is from from to before to, in the form of the
// database; "" if there is none.
func (t Table) oldest(ctx context.Context, from, to string) (at string, err error) {
	err = t.DB.Read.QueryRowContext(ctx, "SELECT at FROM audit WHERE "+unarchivedRecords+" AND at >= ? AND at < ? ORDER BY at LIMIT 1", from, to).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return at, wrap("look for records that are not archived", err)
}
