package sqlbook

import (
	"context"
	"fmt"
	"strings"

	"parley/sessions/sqldb"
)

// schemaNames is what platforms call people, for those who read a list of them.
const schemaNames = `
ALTER TABLE pairings ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN name TEXT NOT NULL DEFAULT ''`

// longestName is how much of a name is kept.
const longestName = 128 // bytes

// nameText is a name as it is kept.
func nameText(name string) string {
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "")
	}
	return sqldb.Text(name)
}

// SetName implements channels.Pairings.
func (b *Book) SetName(ctx context.Context, person, name string) error {
	kept := nameText(name)
	if _, err := b.db.Exec(ctx, `UPDATE pairings SET name = ? WHERE person = ? AND name <> ?`, kept, sqldb.Text(person), kept); err != nil {
		return fmt.Errorf("note a name: %w", err)
	}
	return nil
}

// eraseName forgets what a person was called.
func eraseName(tx *sqldb.Tx, person string) error {
	for _, query := range []string{
		`UPDATE pairings SET name = '' WHERE person = ? AND name <> ''`,
		`UPDATE chats SET name = '', person = '' WHERE person = ?`,
	} {
		if _, err := tx.Exec(query, sqldb.Text(person)); err != nil {
			return err
		}
	}
	return nil
}
