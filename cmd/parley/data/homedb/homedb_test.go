package homedb_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/cmd/parley/data/homedb"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// before makes a closed database file with the schema of the previous release, and returns its path.
func before(t *testing.T, dir, name string, s sqldb.Schema) string {
	t.Helper()
	path := filepath.Join(dir, name)
	db, err := sqldb.Open(t.Context(), path, s.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// enlarge makes a file appear larger than the disk, without using more room.
func enlarge(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 1<<43); err != nil {
		t.Skipf("this disk has no file of that size: %v", err)
	}
}

// A database that can't be migrated stays as it is, so the release that wrote it can continue with it.
func TestWhatCannotBeTakenOverStays(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(t *testing.T, busFile, bookFile string)
		want string
	}{
		"there is no room": {func(t *testing.T, _, bookFile string) {
			enlarge(t, bookFile)
		}, "free up disk space"},
		"there is no room after a restore": {func(t *testing.T, _, bookFile string) {
			if err := homedb.Check(t.Context(), filepath.Dir(bookFile)); err != nil {
				t.Fatal(err)
			}
			enlarge(t, bookFile)
		}, "free up disk space"},
		"a newer release has written the book": {func(t *testing.T, _, bookFile string) {
			s := sqlbook.Schema()
			s.SQLite = append(s.SQLite, "CREATE TABLE later (n INTEGER)")
			before(t, filepath.Dir(bookFile), filepath.Base(bookFile), s)
		}, "use the newer release"},
		"the bus is damaged": {func(t *testing.T, busFile, _ string) {
			if err := os.WriteFile(busFile, []byte(strings.Repeat("this is no database ", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "bus.db"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store := before(t, dir, homedb.File, sqlstore.Schema())
			busFile, bookFile := before(t, dir, homedb.BusFile, sqlitebus.Schema()), before(t, dir, homedb.BookFile, sqlbook.Schema())
			c.harm(t, busFile, bookFile)
			if _, err := homedb.Open(t.Context(), dir, homedb.Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("it is opened with %v, want %q", err, c.want)
			}
			for _, path := range []string{busFile, bookFile} {
				if _, err := os.Stat(path); err != nil {
					t.Error(err)
				}
			}
			db, err := sqldb.Open(t.Context(), store, sqlstore.Schema().SQLite) // as the previous release does
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A check whether the databases can be opened migrates nothing.
func TestCheckTakesNothingOver(t *testing.T) {
	dir := t.TempDir()
	before(t, dir, homedb.File, sqlstore.Schema())
	paths := []string{before(t, dir, homedb.BusFile, sqlitebus.Schema()), before(t, dir, homedb.BookFile, sqlbook.Schema())}
	if err := homedb.Check(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	db, err := homedb.Open(t.Context(), dir, homedb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	for _, path := range paths {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
	if err := homedb.RemoveBefore(dir); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != homedb.File {
		t.Errorf("there are %v, %v", left, err)
	}
}

// If a commit fails after its writers have gone on, the log of the server has what was lost, and the metrics count
// it.
func TestWhatIsLostUnnoticedIsLogged(t *testing.T) {
	var logged bytes.Buffer
	lost := 0
	db, err := homedb.Open(t.Context(), t.TempDir(), homedb.Options{Log: slog.New(slog.NewTextHandler(&logged, nil)), Lost: func(writes int) { lost += writes }})
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	db.Start(func(*sqldb.Tx) error { return refused })
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := logged.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "writes=1 error=refused") || !strings.Contains(got, homedb.File) {
		t.Errorf("the log is %q", got)
	}
	if lost != 1 {
		t.Errorf("%d writes are reported as lost, want 1", lost)
	}
}

// If copying the files fails, for example on a full disk, they stay, and the next start takes them over.
func TestATakeoverThatFailsIsRepeated(t *testing.T) {
	dir := t.TempDir()
	before(t, dir, homedb.File, sqlstore.Schema())
	bookFile, busFile := before(t, dir, homedb.BookFile, sqlbook.Schema()), filepath.Join(dir, homedb.BusFile)
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: busFile})
	if err == nil {
		err = b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "m", Key: "k"})
	}
	if err == nil {
		err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{busFile, bookFile} {
		gone := file + ".gone"
		_, err := homedb.Open(t.Context(), dir, homedb.Options{Point: func(at string) {
			if at == "takeover:begin" {
				if err := os.Rename(file, gone); err != nil {
					t.Error(err)
				}
			}
		}})
		if err == nil || !strings.Contains(err.Error(), filepath.Base(file)) {
			t.Fatalf("it is opened with %v", err)
		}
		if err := os.Rename(gone, file); err != nil {
			t.Fatal(err)
		}
	}
	db, err := homedb.Open(t.Context(), dir, homedb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.Read.QueryRowContext(t.Context(), "SELECT count(*) FROM message WHERE id = 'm'").Scan(&n); err != nil || n != 1 {
		t.Errorf("there are %d messages, %v; want 1", n, err)
	}
	for _, file := range []string{busFile, bookFile} {
		if _, err := os.Stat(file + ".before-1000"); err != nil {
			t.Error(err)
		}
	}
}

// Whatever fails while files are taken over, the previous release can still open all of them, because none has a
// schema version that is unknown to it.
func TestATakeoverThatFailsLeavesTheReleaseBefore(t *testing.T) {
	bookBefore := sqlbook.Schema()
	bookBefore.SQLite = bookBefore.SQLite[:len(bookBefore.SQLite)-1]
	for name, c := range map[string]struct {
		harm func(dir string) error // runs before the takeover
		lose string                 // the file that is away during the takeover
		want string
	}{
		"a newer release has written the store": {func(dir string) error {
			newer := append(sqlstore.Schema().SQLite, "CREATE TABLE later (n INTEGER)")
			db, err := sqldb.Open(t.Context(), filepath.Join(dir, homedb.File), newer)
			return errors.Join(err, db.Close())
		}, "", "use the newer release"},
		"the bus cannot be copied":  {nil, homedb.BusFile, homedb.BusFile},
		"the book cannot be copied": {nil, homedb.BookFile, homedb.BookFile},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			schemas := map[string]sqldb.Schema{homedb.File: sqlstore.Schema(), homedb.BusFile: sqlitebus.Schema(), homedb.BookFile: bookBefore}
			for file, s := range schemas {
				before(t, dir, file, s)
			}
			if c.harm != nil {
				delete(schemas, homedb.File)
				if err := c.harm(dir); err != nil {
					t.Fatal(err)
				}
			}
			lost := filepath.Join(dir, c.lose)
			_, err := homedb.Open(t.Context(), dir, homedb.Options{Point: func(at string) {
				if at == "takeover:begin" && c.lose != "" {
					if err := os.Rename(lost, lost+".lost"); err != nil {
						t.Error(err)
					}
				}
			}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("it is opened with %v, want %q", err, c.want)
			}
			if c.lose != "" {
				if err := os.Rename(lost+".lost", lost); err != nil {
					t.Fatal(err)
				}
			}
			for file, s := range schemas {
				before(t, dir, file, s) // opens the file, as that release does
			}
		})
	}
}

// If the process is killed after it took the files over and before it set them aside, the next start needs no more
// room.
func TestATakeoverThatIsDoneNeedsNoRoom(t *testing.T) {
	dir := t.TempDir()
	before(t, dir, homedb.File, sqlstore.Schema())
	busFile, bookFile := before(t, dir, homedb.BusFile, sqlitebus.Schema()), before(t, dir, homedb.BookFile, sqlbook.Schema())
	inTheWay := filepath.Join(busFile+".before-1000", "in the way")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := homedb.Open(t.Context(), dir, homedb.Options{}); err == nil {
		t.Fatal("the files were set aside")
	}
	if err := errors.Join(os.Remove(inTheWay), os.Remove(filepath.Dir(inTheWay))); err != nil {
		t.Fatal(err)
	}
	if err := homedb.Check(t.Context(), dir); err != nil { // of a backup that was made meanwhile
		t.Fatal(err)
	}
	enlarge(t, bookFile)
	db, err := homedb.Open(t.Context(), dir, homedb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// A start that migrates tables of an earlier release logs it, because that may take a while. Other starts log
// nothing.
func TestAMigrationIsLogged(t *testing.T) {
	dir := t.TempDir()
	book := sqlbook.Schema()
	book.SQLite = book.SQLite[:len(book.SQLite)-1]
	db, err := sqldb.OpenFile(t.Context(), filepath.Join(dir, homedb.File), sqlstore.Schema(), book, sqlitebus.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		var log bytes.Buffer
		db, err := homedb.Open(t.Context(), dir, homedb.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "brought up to date"); n != want || n > 0 && !strings.Contains(log.String(), "component=book") {
			t.Errorf("the log is %q, want %d migrations", log.String(), want)
		}
	}
}
