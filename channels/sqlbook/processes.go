package sqlbook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/sessions/sqldb"
)

// schemaAbout adds a description of each process. Releases before it leave the column empty.
const schemaAbout = `ALTER TABLE processes ADD COLUMN about TEXT NOT NULL DEFAULT ''`

// keepProcesses is how long a process's record is kept if the process did not remove it when it ended.
const keepProcesses = 90 * 24 * time.Hour

// processes stores which formats the running processes can read, and what they are.
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

// DescribeProcess implements channels.Processes: it updates the process's record.
func (p *processes) DescribeProcess(ctx context.Context, name, about string) error {
	if _, err := p.db.Exec(ctx, `UPDATE processes SET about = ?, noted = ? WHERE name = ?`, sqldb.Text(about), toStamp(time.Now()), sqldb.Text(name)); err != nil {
		return fmt.Errorf("describe a process: %w", err)
	}
	return nil
}

// Descriptions implements channels.Processes: it reads the records of some processes at a time.
func (p *processes) Descriptions(ctx context.Context, names []string) (map[string]string, error) {
	found := map[string]string{}
	for some := range slices.Chunk(names, describedAtOnce) {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(some)), ", ")
		all, err := queryAll(ctx, p.db.Read, func(scan func(...any) error) (one [2]string, err error) {
			err = scan(&one[0], &one[1])
			restoreTexts(&one[0], &one[1])
			return one, err
		}, `SELECT name, about FROM processes WHERE about <> '' AND name IN (`+marks+`)`, textArgs(some...)...)
		if err != nil {
			return nil, fmt.Errorf("look what the processes are: %w", err)
		}
		for _, one := range all {
			found[one[0]] = one[1]
		}
	}
	return found, nil
}

// describedAtOnce is how many processes one statement of Descriptions names.
const describedAtOnce = 256
