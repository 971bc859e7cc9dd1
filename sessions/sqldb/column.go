package sqldb

import (
	"database/sql"
	"errors"
)

// Column returns the texts in the only column of a query's result, in the form in which they are stored,
// and closes the rows. Its arguments are what the query returned.
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
