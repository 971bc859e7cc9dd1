package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// auditNotes is the migration that adds the columns for records of turns and refusals, and the indexes
// that find the records of a session and the refusals.
const auditNotes = `
ALTER TABLE audit ADD COLUMN used TEXT NOT NULL DEFAULT '';         -- JSON: what a turn has used
ALTER TABLE audit ADD COLUMN address {bytes} NOT NULL DEFAULT '';   -- where messages were refused
ALTER TABLE audit ADD COLUMN messages TEXT NOT NULL DEFAULT '';     -- JSON: the newest of these messages
ALTER TABLE audit ADD COLUMN refused BIGINT NOT NULL DEFAULT 0;     -- how many there were
CREATE INDEX audit_in_session ON audit (session, turn) WHERE session <> '';
CREATE INDEX audit_refusals ON audit (kind, result, address, person) WHERE kind = 'refusal';
`

// notesPerInsert is how many records one statement inserts.
const notesPerInsert = 50

// AuditNotes stores records in one transaction; see [sessions.Auditor].
func (s *audits) AuditNotes(ctx context.Context, records []sessions.AuditRecord) error {
	err := s.db.Write(ctx, func(tx *sqldb.Tx) error {
		merged, err := mergeRefusals(tx, records)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(merged, notesPerInsert) {
			if err := insertNotes(tx, part); err != nil {
				return err
			}
		}
		return dropExcessRefusals(tx, records)
	})
	if err != nil {
		return fmt.Errorf("keep audit records: %w", err)
	}
	return nil
}

// mergeRefusals merges each refusal with those of the same rule, address and person, both in records and in the
// table, and removes the latter from the table. It returns the merged records and the others, without ends of
// turns that are in the table already.
func mergeRefusals(tx *sqldb.Tx, records []sessions.AuditRecord) (merged []sessions.AuditRecord, err error) {
	type kin struct{ rule, address, person string }
	at := map[kin]int{}
	for _, r := range records {
		if r.Kind != sessions.AuditRefusal {
			kept, err := isRecorded(tx, r)
			if err != nil {
				return nil, err
			}
			if !kept {
				merged = append(merged, r)
			}
			continue
		}
		like := kin{r.Result, r.Address, r.By}
		i, known := at[like]
		if !known {
			earlier, err := takeRefusals(tx, like.rule, like.address, like.person)
			if err != nil {
				return nil, err
			}
			i = len(merged)
			at[like], merged = i, append(merged, earlier)
		}
		earlier := merged[i]
		r.Count = earlier.Count + cmp.Or(r.Count, int64(len(r.Messages)))
		r.Messages = slices.Concat(earlier.Messages, r.Messages)
		r.Messages = r.Messages[max(0, len(r.Messages)-sessions.MaxRefusedIDs):]
		merged[i] = r
	}
	return merged, nil
}

// isRecorded reports whether the table already contains r, a record of the end of a turn. It looks only
// if r may be a repetition.
func isRecorded(tx *sqldb.Tx, r sessions.AuditRecord) (bool, error) {
	if !r.MayBeRecorded || r.Session == "" {
		return false, nil
	}
	var kept bool
	err := tx.Get("SELECT EXISTS (SELECT 1 FROM audit WHERE session = ? AND session <> '' AND turn = ? AND kind = ?)",
		[]any{sqldb.Text(r.Session), sqldb.Text(r.Turn), r.Kind}, &kept)
	return kept, err
}

// takeRefusals removes the refusals of one person's messages by one rule at one address, and returns
// their sum.
func takeRefusals(tx *sqldb.Tx, rule, address, person string) (sum sessions.AuditRecord, err error) {
	found, err := tx.Query(`DELETE FROM audit WHERE kind = 'refusal' AND result = ? AND address = ? AND person = ? RETURNING messages, refused`,
		rule, sqldb.Text(address), sqldb.Text(person))
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var messages string
		var n int64
		if err := found.Scan(&messages, &n); err != nil {
			return sum, err
		}
		ids, err := readRefused(messages)
		if err != nil {
			return sum, err
		}
		sum.Messages, sum.Count = append(sum.Messages, ids...), sum.Count+n
	}
	return sum, found.Err()
}

// readRefused reads the ids of the messages of a refusal.
func readRefused(messages string) (ids []string, err error) {
	if messages != "" {
		err = json.Unmarshal([]byte(sqldb.Untext(messages)), &ids)
	}
	return ids, err
}

// insertNotes inserts records with one statement. It leaves out the person if their message was erased
// meanwhile: the erasure may have looked for records of that person before this one was written.
func insertNotes(tx *sqldb.Tx, records []sessions.AuditRecord) error {
	const columns = "at, kind, person, agent, session, turn, call, tool, arguments, verdict, result, exit_code, bytes, elapsed_ms, detail, used, address, messages, refused"
	const person = "CASE WHEN EXISTS (SELECT 1 FROM erased WHERE key = ? AND cause = ?) THEN '' ELSE CAST(? AS TEXT) END"
	row := "(?, ?, " + person + strings.Repeat(", ?", 16) + ")"
	var args []any
	for _, r := range records {
		used, messages := []byte(nil), []byte(nil)
		var err error
		if r.Used != nil {
			if used, err = plainjson.Marshal(r.Used); err != nil {
				return err
			}
		}
		if len(r.Messages) > 0 {
			if messages, err = plainjson.Marshal(r.Messages); err != nil {
				return err
			}
		}
		args = append(args, sqldb.FormatTime(r.At), r.Kind, sqldb.Text(r.Session), sqldb.Text(r.Turn), sqldb.Text(r.By), sqldb.Text(r.Agent), sqldb.Text(r.Session), sqldb.Text(r.Turn), "", "", "", "",
			sqldb.Text(r.Result), "", r.Bytes, r.Elapsed, sqldb.Text(r.Detail), sqldb.Text(string(used)), sqldb.Text(r.Address), sqldb.Text(string(messages)), r.Count)
	}
	_, err := tx.Exec("INSERT INTO audit ("+columns+") VALUES "+strings.TrimSuffix(strings.Repeat(row+", ", len(records)), ", "), args...)
	return err
}

// dropExcessRefusals deletes the oldest refusals beyond the maximum, separately for each rule and channel that
// occurs in records: so a flood on one channel does not displace the refusals on another.
func dropExcessRefusals(tx *sqldb.Tx, records []sessions.AuditRecord) error {
	type part struct{ rule, channel string }
	done := map[part]bool{}
	for _, r := range records {
		channel, _, _ := strings.Cut(r.Address, ":")
		p := part{r.Result, channel}
		if r.Kind != sessions.AuditRefusal || done[p] {
			continue
		}
		done[p] = true
		_, err := tx.Exec(`DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE kind = 'refusal' AND result = ? AND address >= ? AND address < ?
			ORDER BY id DESC LIMIT 1000000 OFFSET ?)`, p.rule, p.channel+":", p.channel+";", sessions.MaxRefusals) // ";" follows ":" in the sort order
		if err != nil {
			return err
		}
	}
	return nil
}

// DropRefusals deletes old refusals; see [sessions.Auditor].
func (s *audits) DropRefusals(ctx context.Context, before time.Time) error {
	const old = "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE kind = 'refusal' AND at < ? LIMIT ?)"
	if _, err := inBatches(ctx, s.db, nil, old, sqldb.FormatTime(before)); err != nil {
		return fmt.Errorf("delete old refusals: %w", err)
	}
	return nil
}
