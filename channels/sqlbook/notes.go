package sqlbook

import (
	"context"
	"fmt"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

// schemaNotes adds the table of channels.Notes.
const schemaNotes = `
CREATE TABLE IF NOT EXISTS notes (
	subject TEXT NOT NULL,
	about   TEXT NOT NULL,
	value   TEXT NOT NULL,
	noted   BIGINT NOT NULL,
	PRIMARY KEY (subject, about)
)`

// notes stores what the bot has told people, and similar facts.
type notes struct{ db *sqldb.DB }

// SetNote implements channels.Notes: it replaces or deletes a value.
func (n *notes) SetNote(ctx context.Context, subject, about, value string) error {
	query, args := `DELETE FROM notes WHERE subject = ? AND about = ?`, textArgs(subject, about)
	if value != "" {
		query = `INSERT INTO notes (subject, about, value, noted) VALUES (?, ?, ?, ?)
			ON CONFLICT (subject, about) DO UPDATE SET value = excluded.value, noted = excluded.noted`
		args = append(args, sqldb.Text(value), toStamp(time.Now()))
	}
	if _, err := n.db.Exec(ctx, query, args...); err != nil {
		return fmt.Errorf("write a note: %w", err)
	}
	return nil
}

// SetNoteOnce implements channels.Notes: it inserts a value unless there already is one, and returns the stored
// value.
func (n *notes) SetNoteOnce(ctx context.Context, subject, about, value string) (string, error) {
	args := append(textArgs(subject, about, value), toStamp(time.Now()))
	if _, err := n.db.Exec(ctx, `INSERT INTO notes (subject, about, value, noted) VALUES (?, ?, ?, ?) ON CONFLICT (subject, about) DO NOTHING`, args...); err != nil {
		return "", fmt.Errorf("write a note: %w", err)
	}
	kept, err := n.Noted(ctx, subject, about)
	return kept.Value, err
}

// Noted implements channels.Notes: it reads one note.
func (n *notes) Noted(ctx context.Context, subject, about string) (channels.Note, error) {
	found, err := queryAll(ctx, n.db.Read, scanNote, `SELECT about, value, noted FROM notes WHERE subject = ? AND about = ?`, textArgs(subject, about)...)
	if err != nil || len(found) == 0 {
		return channels.Note{}, err
	}
	return found[0], nil
}

// AllNoted implements channels.Notes: it lists a subject's notes, sorted by About.
func (n *notes) AllNoted(ctx context.Context, subject string) ([]channels.Note, error) {
	return queryAll(ctx, n.db.Read, scanNote, `SELECT about, value, noted FROM notes WHERE subject = ? ORDER BY about`, textArgs(subject)...)
}

func scanNote(scan func(...any) error) (r channels.Note, err error) {
	var noted int64
	err = scan(&r.About, &r.Value, &noted)
	restoreTexts(&r.About, &r.Value)
	r.At = timeOf(noted)
	return r, err
}
