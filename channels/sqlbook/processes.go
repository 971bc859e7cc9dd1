package sqlbook

import (
	"context"
	"fmt"
	"time"

	"parley/sessions/sqldb"
)

// keepProcesses is how long a process's record is kept if the process did not remove it when it ended.
const keepProcesses = 90 * 24 * time.Hour

// processes stores which formats the running processes can read.
type processes struct{ db *sqldb.DB }

// NoteProcess implements channels.Processes: it replaces the process's record, and deletes
// old ones.
func (p *processes) NoteProcess(ctx context.Context, name string, understands int) error {
	err := p.db.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(`DELETE FROM processes WHERE name = ? OR noted < ?`, sqldb.Text(name), toStamp(time.Now().Add(-keepProcesses))); err != nil {
			return err
		}
		if understands == 0 {
			return nil
		}
		_, err := tx.Exec(`INSERT INTO processes (name, understands, noted) VALUES (?, ?, ?)`, sqldb.Text(name), understands, toStamp(time.Now()))
		return err
	})
	if err != nil {
		return fmt.Errorf("note a process: %w", err)
	}
	return nil
}

// AllUnderstand implements channels.Processes: it looks for names whose number is too low, or that have none.
func (p *processes) AllUnderstand(ctx context.Context, names []string, least int) (bool, error) {
	able, err := queryAll(ctx, p.db.Read, func(scan func(...any) error) (name string, err error) {
		err = scan(&name)
		restoreTexts(&name)
		return name, err
	}, `SELECT name FROM processes WHERE understands >= ?`, least)
	if err != nil {
		return false, fmt.Errorf("look which releases serve: %w", err)
	}
	known := map[string]bool{}
	for _, name := range able {
		known[name] = true
	}
	for _, name := range names {
		if !known[name] {
			return false, nil
		}
	}
	return true, nil
}
