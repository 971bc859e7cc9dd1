package vectors

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// A Scope is a part of a session: the entries after a number.
type Scope struct{ Session, After int64 }

// A Query asks for entries whose vectors are like another vector.
type Query struct {
	Vector   Packed
	Identity Identity
	Scopes   []Scope
	// Since and Until limit the times of the entries, Until excluded, in the format of the tables; ""
	// means no limit.
	Since, Until string
	Limit        int
}

// A Near is an entry whose vector is like that of a query.
type Near struct {
	Session, N int64
	Likeness   float64
}

// Near returns the entries that are most like a query, those first, and how like the query an average
// entry of the scopes is. It compares all vectors of the scopes, and finds nothing if the vectors are of
// another identity.
func (s Store) Near(ctx context.Context, q Query) (found []Near, average float64, err error) {
	query, args, err := s.statementFor(q)
	if err != nil {
		return nil, 0, err
	}
	rows, err := s.DB.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, 0, fmt.Errorf("look for vectors: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var vector sql.RawBytes
	sum := 0.0
	for rows.Next() {
		var n Near
		if err := rows.Scan(&n.Session, &n.N, &vector); err != nil {
			return nil, 0, fmt.Errorf("look for vectors: %w", err)
		}
		n.Likeness = q.Vector.Likeness(Packed(vector))
		sum += n.Likeness
		found = append(found, n)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("look for vectors: %w", err)
	}
	if len(found) > 0 {
		average = sum / float64(len(found))
	}
	slices.SortFunc(found, func(a, b Near) int {
		return cmp.Or(cmp.Compare(b.Likeness, a.Likeness), cmp.Compare(b.Session, a.Session), cmp.Compare(b.N, a.N))
	})
	return found[:min(len(found), q.Limit)], average, nil
}

// statementFor returns the statement that reads the vectors for a query. The statement compares the identity
// itself, because that may change before it runs.
func (s Store) statementFor(q Query) (query string, args []any, err error) {
	ids, after, lowest := make([]int64, 0, len(q.Scopes)), make([]int64, 0, len(q.Scopes)), make([]int64, 0, len(q.Scopes))
	for _, in := range q.Scopes {
		ids, after, lowest = append(ids, in.Session), append(after, in.After), append(lowest, rowOf(in.Session, min(in.After, maxEntries-1)))
	}
	columns, from, key := "v.session, v.n", "unnest(CAST(? AS bigint[]), CAST(? AS bigint[])) AS s (id, after) JOIN entry_vectors v ON v.session = s.id AND v.n > s.after", "e.session = v.session AND e.n = v.n"
	args = []any{ids, after}
	if !s.DB.IsPostgres() {
		columns, key = "v.row >> 28, v.row & 268435455", "e.session = v.row >> 28 AND e.n = v.row & 268435455"
		from = "json_each(?) AS s CROSS JOIN entry_vectors v ON v.row > s.value AND v.row < ((s.value >> 28) + 1) << 28"
		list, err := plainjson.Marshal(lowest)
		if err != nil {
			return "", nil, err
		}
		args = []any{string(list)}
	}
	var b strings.Builder
	b.WriteString("SELECT " + columns + ", v.vector FROM " + from)
	if q.Since != "" || q.Until != "" {
		b.WriteString(" JOIN entries e ON " + key)
	}
	b.WriteString(" WHERE EXISTS (SELECT 1 FROM vector_identity WHERE model = ? AND prompt = ? AND dimensions = ?)")
	args = append(args, sqldb.Text(q.Identity.Model), sqldb.Text(q.Identity.Prompt), q.Identity.Dimensions)
	if q.Since != "" {
		b.WriteString(" AND e.at >= ?")
		args = append(args, q.Since)
	}
	if q.Until != "" {
		b.WriteString(" AND e.at < ?")
		args = append(args, q.Until)
	}
	return b.String(), args, nil
}
