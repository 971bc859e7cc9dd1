package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// errTakesNoWrites says that the server that was reached takes no writes.
var errTakesNoWrites = errors.New("the server takes no writes: it stands by for another one, or has default_transaction_read_only on; name the primary in the URL, or all servers (postgres://USER@ONE,TWO/DATABASE)")

// preferPrimary makes connections go to the server that accepts writes if the URL names several servers, unless
// the URL says which one it wants.
func preferPrimary(cfg *pgx.ConnConfig) {
	others := func(f *pgconn.FallbackConfig) bool { return f.Host != cfg.Host || f.Port != cfg.Port }
	if cfg.ValidateConnect == nil && slices.ContainsFunc(cfg.Fallbacks, others) {
		cfg.ValidateConnect = takesWrites
	}
}

// disablePreparing makes statements run without being prepared under a name, unless the URL says how they run.
// A connection pool in front of the server may run each of them on another connection.
func disablePreparing(cfg *pgx.ConnConfig) {
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
}

// adaptToServer makes statements be prepared only if there is no connection pool such as PgBouncer in front of
// the server. It returns an error if the server accepts no writes.
func adaptToServer(ctx context.Context, cfg *pgx.ConnConfig) error {
	ctx, cancel := context.WithTimeout(ctx, defaultStatementTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // the connection was only used for queries
	if err := takesWrites(ctx, conn.PgConn()); err != nil {
		return err
	}
	pooled, err := isPooled(ctx, conn.PgConn())
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	if pooled {
		disablePreparing(cfg)
	}
	return nil
}

// takesWrites returns errTakesNoWrites if the server at the other end takes none.
func takesWrites(ctx context.Context, conn *pgconn.PgConn) error {
	answer, err := queryValue(ctx, conn, "SHOW transaction_read_only")
	if err == nil && answer == "on" {
		err = errTakesNoWrites
	}
	return err
}

// isPooled reports whether there is a connection pool in front of the server, which may run each transaction on
// another connection. It compares the process number that the pool reports for the connection with the number
// of the server's process, which differ behind a pool.
func isPooled(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	answer, err := queryValue(ctx, conn, "SELECT pg_backend_pid()")
	return answer != fmt.Sprint(conn.PID()), err
}

// queryValue runs a query and returns the value that it finds.
func queryValue(ctx context.Context, conn *pgconn.PgConn, query string) (string, error) {
	results, err := conn.Exec(ctx, query).ReadAll()
	if err != nil {
		return "", err
	}
	for _, r := range results {
		for _, row := range r.Rows {
			if len(row) > 0 {
				return string(row[0]), nil
			}
		}
	}
	return "", errors.New("no answer to " + query)
}
