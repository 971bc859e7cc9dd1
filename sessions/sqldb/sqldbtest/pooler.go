package sqldbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Pooler is a PgBouncer in front of the tests' PostgreSQL. It gives a connection to another client after each
// transaction.
type Pooler struct {
	server  *url.URL // PostgreSQL's
	host    string   // PgBouncer's, with its port
	process *os.Process

	mu        sync.Mutex // guards the file with the databases, and what is in it
	file      string
	databases string
}

// StartPooler starts a PgBouncer, which ends with the test. Without that program the test is skipped.
func StartPooler(t testing.TB) *Pooler {
	t.Helper()
	place, program := os.Getenv("PARLEY_TEST_DATABASE_URL"), os.Getenv("PARLEY_TEST_PGBOUNCER")
	if place == "" || program == "" {
		t.Skip("there is no PARLEY_TEST_DATABASE_URL, or no PARLEY_TEST_PGBOUNCER: " + howToRun)
	}
	server, err := url.Parse(place)
	if err != nil {
		t.Fatal(err)
	}
	p := &Pooler{server: server, host: freeAddress(t)}
	dir, credential := placeFor(t, "parley-pgbouncer") // it refuses to run as root
	settings := p.writeSettings(t, dir)
	cmd := exec.Command(program, "-q", settings)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.process = cmd.Process
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
		if t.Failed() {
			t.Logf("PgBouncer said: %s", said.String())
		}
	})
	p.await(t, func() error {
		conn, err := net.Dial("tcp", p.host)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	return p
}

// writeSettings writes PgBouncer's files into a folder, and returns the path of the main one, which names the
// others.
func (p *Pooler) writeSettings(t testing.TB, dir string) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(p.host)
	users, settings := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
	p.file, p.databases = filepath.Join(dir, "databases.ini"), "[databases]\n"
	for file, text := range map[string]string{
		p.file: p.databases, users: fmt.Sprintf("%q \"\"\n", p.server.User.Username()),
		settings: fmt.Sprintf("%%include %s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\n"+
			"auth_type = trust\nauth_file = %s\npool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 500\n", p.file, port, users),
	} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return settings
}

// await calls try until it succeeds, and fails the test if that takes too long.
func (p *Pooler) await(t testing.TB, try func() error) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for tick := time.Tick(5 * time.Millisecond); ; <-tick {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatal("PgBouncer does not start: ", err)
		default:
		}
	}
}

// New creates an empty schema for this test alone, and returns its URL, which leads through PgBouncer.
// PgBouncer presents the schema as a database, because clients that share connections can't set a search path.
func (p *Pooler) New(t testing.TB) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text())
	execute(t.Context(), t, p.server.String(), "CREATE SCHEMA "+name)
	p.mu.Lock()
	p.databases += fmt.Sprintf("%s = host=%s port=%s dbname=%s connect_query='SET search_path TO %s'\n",
		name, p.server.Hostname(), p.server.Port(), strings.TrimPrefix(p.server.Path, "/"), name)
	err := os.WriteFile(p.file, []byte(p.databases), 0o644)
	p.mu.Unlock()
	if err = errors.Join(err, p.process.Signal(syscall.SIGHUP)); err != nil {
		t.Fatal(err)
	}
	u := *p.server
	u.Host, u.Path = p.host, "/"+name
	db, err := sql.Open("pgx", u.String())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p.await(t, func() error { return db.PingContext(t.Context()) }) // until PgBouncer has read the file
	t.Cleanup(func() {
		execute(context.WithoutCancel(t.Context()), t, p.server.String(), "DROP SCHEMA "+name+" CASCADE")
	})
	return u.String()
}
