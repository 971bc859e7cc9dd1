package sqlstore

import (
	"context"

	"parley/sessions/sqldb"
)

// batchRows is how many rows one transaction of inBatches changes.
const batchRows = 500

// inBatches runs a statement again and again, each time in a transaction of its own, until nothing is
// left to change, so that others can write in between. The statement's last argument is the number of
// rows that it is to change. It must not find rows again that it has changed. after, if set, is
// called in each transaction that has changed something.
func inBatches(ctx context.Context, db *sqldb.DB, after func(*sqldb.Tx) error, query string, args ...any) (sum int64, err error) {
	for args = append(args, batchRows); ; {
		var n int64
		err := db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			if n, err = tx.Exec(query, args...); err != nil || n == 0 || after == nil {
				return err
			}
			return after(tx)
		})
		if sum += n; err != nil || n < batchRows {
			return sum, err
		}
	}
}
