package worker_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// A crashHome is the bus and the store in a directory.
type crashHome struct {
	bus   *sqlitebus.Bus
	store *sqlstore.Store
	dir   string
	db    *sqldb.DB // what they share; nil if each has a file of its own
}

// runSharedAndSeparate runs a test with a bus and a store that share a file, and with ones that have a file each.
func runSharedAndSeparate(t *testing.T, name string, run func(t *testing.T, dir string)) {
	t.Helper()
	for _, shared := range []bool{true, false} {
		how := " apart"
		if shared {
			how = " in one file"
		}
		t.Run(name+how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if shared {
				shareOneFile(t, dir)
			}
			run(t, dir)
		})
	}
}

// shareOneFile lets the bus and the store in dir share a file.
func shareOneFile(t testing.TB, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "shared"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func isShared(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "shared"))
	return err == nil
}

// Empty databases as openIn creates them. Copying them is many times faster than creating them.
var (
	emptySharedFiles   = sync.OnceValues(func() (map[string][]byte, error) { return emptyFiles("shared") })
	emptySeparateFiles = sync.OnceValues(func() (map[string][]byte, error) { return emptyFiles() })
)

// emptyFiles returns the files of databases that openIn has made in a directory with empty files of some names.
func emptyFiles(names ...string) (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "parley-empty-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return nil, err
		}
	}
	h, err := openIn(context.Background(), dir, bus.Caps{})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(h.store.Close(), h.bus.Close()); err != nil {
		return nil, err
	}
	files = map[string][]byte{}
	for _, name := range []string{"bus.db", "sessions.db"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	return files, nil
}

// fillEmpty puts empty databases into a directory that has none.
func fillEmpty(t testing.TB, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "sessions.db")); err == nil {
		return
	}
	empty := emptySeparateFiles
	if isShared(dir) {
		empty = emptySharedFiles
	}
	files, err := empty()
	for name, data := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openIn opens the bus and the store in dir. A process that another test is just
// starting has for a moment a copy of each file that this one has open, and so of
// the bus's lock.
func openIn(ctx context.Context, dir string, caps bus.Caps) (*crashHome, error) {
	h := &crashHome{dir: dir}
	c := sqlitebus.Config{Path: filepath.Join(dir, "bus.db"), Caps: caps}
	if isShared(dir) {
		c.Database = func(ctx context.Context) (_ *sqldb.DB, err error) {
			h.db, err = sqldb.OpenFile(ctx, h.file(), sqlstore.Schema(), sqlbook.Schema(), sqlitebus.Schema())
			return h.db, err
		}
	}
	var err error
	h.bus, err = sqlitebus.Open(ctx, c)
	for deadline := time.Now().Add(2 * time.Minute); err != nil && time.Now().Before(deadline); {
		if _, inUse := errors.AsType[*sqlitebus.InUseError](err); !inUse {
			break
		}
		<-time.After(5 * time.Millisecond)
		h.bus, err = sqlitebus.Open(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	if h.db == nil {
		h.store, err = sqlstore.Open(ctx, h.file())
	} else if h.store, err = sqlstore.Use(ctx, h.db); err == nil {
		h.store.PublishBy(h.bus)
	}
	return h, err
}

// file returns the path of the file that has the store.
func (h *crashHome) file() string { return filepath.Join(h.dir, "sessions.db") }

// openHome opens the bus and the store in dir until the test ends, or until Close is called.
func openHome(t *testing.T, dir string) *crashHome {
	t.Helper()
	fillEmpty(t, dir)
	h, err := openIn(t.Context(), dir, bus.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// openBook opens the book.
func (h *crashHome) openBook(ctx context.Context) (*sqlbook.Book, error) {
	if h.db != nil {
		return sqlbook.Use(ctx, h.db)
	}
	return sqlbook.Open(ctx, filepath.Join(h.dir, "book.db"))
}

// Close closes the store, and the bus with the file that they share. It may be called again.
func (h *crashHome) Close() {
	_ = h.store.Close() // what was to be written was looked at before
	_ = h.bus.Close()
}

// passPoints makes the publications that the store writes pass points, too.
func (h *crashHome) passPoints(point func(string)) {
	if h.db != nil && point != nil {
		h.store.PublishBy(carrierWithPoints{h.bus, point})
	}
}

// A carrierWithPoints passes a point before and after each line of a publication that is part of
// another write.
type carrierWithPoints struct {
	*sqlitebus.Bus
	point func(string)
}

func (c carrierWithPoints) Share(topic, key, id string, body []byte) (sqldb.Share, error) {
	s, err := c.Bus.Share(topic, key, id, body)
	return shareWithPoints{s, c.point}, err
}

type shareWithPoints struct {
	sqldb.Share
	point func(string)
}

func (s shareWithPoints) Write(tx *sqldb.Tx) (refused, err error) {
	s.point("share:before")
	refused, err = s.Share.Write(tx)
	s.point("share:written")
	return refused, err
}

func (s shareWithPoints) End(durable bool) {
	s.point("share:over")
	s.Share.End(durable)
}
