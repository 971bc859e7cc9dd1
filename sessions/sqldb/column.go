package sqldb

import (
	"database/sql"
	"errors"
)

// Column returns the texts that a query has found in its only column, in the form in which they are
// stored, and closes the rows. Its arguments are what the query has returned.
func Column(found *sql.Rows, err error) (texts []string, _ error) {
	if err != nil {
		return nil, err
	}
	for found.Next() {
		var text string
		if err := found.Scan(&text); err != nil {
			return nil, errors.Join(err, found.Close())
		}
		texts = append(texts, text)
	}
	return texts, errors.Join(found.Err(), found.Close())
}
