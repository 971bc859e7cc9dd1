package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Health says how a PostgreSQL server is set up for connections of this package, and which tables it has.
type Health struct {
	Version         int  // in the form of server_version_num: 150004
	ReadOnly        bool // whether it is a replica, or takes no writes for another reason
	MayCreateTables bool // whether our user may create tables in the schema
	// Fsync, SynchronousCommit and FullPageWrites are the server's settings of these names.
	Fsync, SynchronousCommit, FullPageWrites string
	MaxConns                                 int // how many connections it allows, without those reserved for superusers
	ConnsPerProcess                          int // how many a process opens at most
	// ClockSkew is about how far the server's clock is ahead of ours.
	ClockSkew time.Duration
	// Versions is how many migrations were applied to each component's tables, and RequiredVersions how many
	// a release must know to work on them. Components that were never opened are missing.
	Versions, RequiredVersions map[string]int
}

// Probe reads the Health of the server that a URL names, and changes nothing.
func Probe(ctx context.Context, url string) (h Health, err error) {
	cfg, conns, err := parseURL(url)
	if err != nil {
		return h, fmt.Errorf("database URL: %w", err)
	}
	disablePreparing(cfg)
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return h, withoutRepeats(err)
	}
	defer func() {
		if end := c.Close(context.WithoutCancel(ctx)); err == nil && end != nil {
			err = end
		}
	}()
	if err := connectionSetup(cfg, false)(ctx, c); err != nil {
		return h, err
	}
	h.ConnsPerProcess = conns
	if err := h.readServer(ctx, c); err != nil {
		return h, fmt.Errorf("ask the database about itself: %w", err)
	}
	return h, h.readVersions(ctx, c)
}

// withoutRepeats returns the network error inside of an error to connect. The driver's
// error repeats the user, the database and each address that it tried.
func withoutRepeats(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	return err
}

// readServer reads the server's settings and its clock.
func (h *Health) readServer(ctx context.Context, c *pgx.Conn) error {
	var version, most, reserved, readOnly string
	var mayMake sql.NullBool // null if the URL names a schema that does not exist
	var now time.Time
	began := time.Now()
	if err := c.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return err
	}
	h.ClockSkew = now.Sub(began.Add(time.Since(began) / 2))
	err := c.QueryRow(ctx, `SELECT current_setting('server_version_num'), current_setting('fsync'),
		current_setting('synchronous_commit'), current_setting('full_page_writes'), current_setting('max_connections'),
		current_setting('superuser_reserved_connections'), current_setting('transaction_read_only'),
		has_schema_privilege(current_schema(), 'CREATE')`).
		Scan(&version, &h.Fsync, &h.SynchronousCommit, &h.FullPageWrites, &most, &reserved, &readOnly, &mayMake)
	if err != nil {
		return err
	}
	h.ReadOnly, h.MayCreateTables = readOnly == "on", mayMake.Bool
	numbers := make([]int, 3)
	for i, text := range []string{version, most, reserved} {
		if numbers[i], err = strconv.Atoi(text); err != nil {
			return err
		}
	}
	h.Version, h.MaxConns = numbers[0], numbers[1]-numbers[2]
	return nil
}

// readVersions reads the versions of the components' tables.
func (h *Health) readVersions(ctx context.Context, c *pgx.Conn) error {
	h.Versions, h.RequiredVersions = map[string]int{}, map[string]int{}
	var there bool
	if err := c.QueryRow(ctx, "SELECT to_regclass('parley_schema') IS NOT NULL").Scan(&there); err != nil || !there {
		return err
	}
	found, err := c.Query(ctx, "SELECT component, version, oldest FROM parley_schema")
	if err != nil {
		return fmt.Errorf("read the versions: %w", err)
	}
	defer found.Close()
	for found.Next() {
		var name string
		var version, oldest int
		if err := found.Scan(&name, &version, &oldest); err != nil {
			return fmt.Errorf("read the versions: %w", err)
		}
		h.Versions[name], h.RequiredVersions[name] = version, oldest
	}
	return found.Err()
}
