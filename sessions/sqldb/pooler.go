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

// preferPrimary has connections made to the server that takes writes if the URL names several servers, unless it says
// which it wants.
func preferPrimary(cfg *pgx.ConnConfig) {
	others := func(f *pgconn.FallbackConfig) bool { return f.Host != cfg.Host || f.Port != cfg.Port }
	if cfg.ValidateConnect == nil && slices.ContainsFunc(cfg.Fallbacks, others) {
		cfg.ValidateConnect = takesWrites
	}
}

// prepareNothing has statements run without being prepared under a name, unless the URL says how they run. A pool before
// the server may run each on another connection to it.
func prepareNothing(cfg *pgx.ConnConfig) {
	if cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		cfg.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
}

// adaptTo has statements prepared only if there is no pool such as PgBouncer before the server. It returns an error if
// the server takes no writes.
func adaptTo(ctx context.Context, cfg *pgx.ConnConfig) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // it has only been asked something
	if err := takesWrites(ctx, conn.PgConn()); err != nil {
		return err
	}
	pooled, err := isPooled(ctx, conn.PgConn())
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	if pooled {
		prepareNothing(cfg)
	}
	return nil
}

// takesWrites returns errTakesNoWrites if the server at the other end takes none.
func takesWrites(ctx context.Context, conn *pgconn.PgConn) error {
	answer, err := ask(ctx, conn, "SHOW transaction_read_only")
	if err == nil && answer == "on" {
		err = errTakesNoWrites
	}
	return err
}

// isPooled reports whether there is a pool before the server, which may run each transaction on another connection to
// it. The number that a pool gives as that of the connection's process is not the process's own.
func isPooled(ctx context.Context, conn *pgconn.PgConn) (bool, error) {
	answer, err := ask(ctx, conn, "SELECT pg_backend_pid()")
	return answer != fmt.Sprint(conn.PID()), err
}

// ask runs a query and returns the value that it finds.
func ask(ctx context.Context, conn *pgconn.PgConn, query string) (string, error) {
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
