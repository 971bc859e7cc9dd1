// Package sqldbtest gives tests PostgreSQL databases of their own.
//
// Tests share the server that PARLEY_TEST_DATABASE_URL names. The script
// .ci/servers sets this variable, and make test runs the tests with that
// script.
package sqldbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "parley/sessions/sqldb" // the driver named "pgx"
)

const howToRun = "run it as `.ci/servers go test …`, or with make test"

// New makes an empty schema in the tests' PostgreSQL, for this test alone, and
// returns its URL. Where there is no PostgreSQL the test is skipped.
func New(t testing.TB) string {
	t.Helper()
	place := os.Getenv("PARLEY_TEST_DATABASE_URL")
	if place == "" {
		t.Skip("there is no PARLEY_TEST_DATABASE_URL: " + howToRun)
	}
	name := "test_" + strings.ToLower(rand.Text())
	execute(t.Context(), t, place, "CREATE SCHEMA "+name)
	t.Cleanup(func() { execute(context.WithoutCancel(t.Context()), t, place, "DROP SCHEMA "+name+" CASCADE") })
	return withSchema(t, place, name)
}

// withSchema returns a database's URL with a schema as its search path.
func withSchema(t testing.TB, place, schema string) string {
	t.Helper()
	u, err := url.Parse(place)
	if err != nil {
		t.Fatal("PARLEY_TEST_DATABASE_URL is no URL")
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}

// Query runs a query by hand, as a database's owner would, and returns each row
// as a text, its columns separated by spaces.
func Query(t testing.TB, driver, place, query string) []string {
	t.Helper()
	db, err := sql.Open(driver, place)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	names, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for found.Next() {
		values, dest := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range dest {
			dest[i] = &values[i]
		}
		if err := found.Scan(dest...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(names))
		for i, v := range values {
			row[i] = v.String
		}
		list = append(list, strings.Join(row, " "))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// execute runs one statement in the database at place.
func execute(ctx context.Context, t testing.TB, place, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", place)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatal(err)
	}
}
