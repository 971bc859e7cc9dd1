package homedb

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/tools/plainjson"
)

// setAsideSuffix is the suffix of the name of a file that was set aside. 1000 is the version that makes older releases
// refuse the shared file.
const setAsideSuffix = ".before-1000"

// These constants say how much disk space must be free for a takeover: roomFactor times the size of the files, for
// their rows in the log beside the database, in the database, and in the indexes; and some more.
const (
	roomFactor = 3
	spareRoom  = 16 << 20
)

// filesBefore returns the files in dir that an older release has left, with the tables in each.
func filesBefore(dir string) (old []sqldb.Source, err error) {
	for _, s := range []sqldb.Source{
		{Path: filepath.Join(dir, BusFile), Schema: sqlitebus.Schema()},
		{Path: filepath.Join(dir, BookFile), Schema: sqlbook.Schema()},
	} {
		_, err := os.Stat(s.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		old = append(old, s)
	}
	return old, nil
}

// beginTakeover makes sure that the old files can be taken over, before it changes anything that keeps an older
// release from continuing with them. If the database is already shared, the files were taken over, but not set
// aside.
func beginTakeover(dir string, old []sqldb.Source, shared bool, o Options) error {
	size, err := sizeOf(old)
	if err == nil && !shared {
		err = checkRoom(dir, size)
	}
	if err != nil {
		return err
	}
	o.Log.Info("files of an older release are taken over", slog.String("into", filepath.Join(dir, File)), slog.Uint64("bytes", size))
	o.Point("takeover:begin")
	return nil
}

// checkRoom returns an error if the disk may be too full to take over the old files, which have this size. What an
// interrupted takeover has left in the log beside the database counts as free, because it is overwritten.
func checkRoom(dir string, size uint64) error {
	free, known, err := freeRoom(dir)
	if log, gone := os.Stat(filepath.Join(dir, File+"-wal")); gone == nil {
		free += uint64(log.Size())
	}
	if need := roomFactor*size + spareRoom; err == nil && known && free < need {
		const mega = 1 << 20
		return fmt.Errorf("%s and %s take up %d MB, which Parley has to copy into %s: free up disk space (%d MB are free, and %d MB are needed); nothing is lost",
			BusFile, BookFile, size/mega, filepath.Join(dir, File), free/mega, need/mega)
	}
	return err
}

// sizeOf returns how many bytes the old files have, with the logs beside them.
func sizeOf(old []sqldb.Source) (size uint64, err error) {
	for _, s := range old {
		for _, name := range []string{s.Path, s.Path + "-wal"} {
			info, err := os.Stat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return 0, err
			}
			size += uint64(info.Size())
		}
	}
	return size, nil
}

// endTakeover sets the old files aside. A file that is still there the next time, because the process was killed or
// an older release has created an empty one before it refused the home, is taken over again, which changes nothing.
func endTakeover(dir string, old []sqldb.Source, o Options) error {
	if len(old) == 0 {
		return nil
	}
	o.Point("takeover:copied")
	for _, s := range old {
		if err := setAside(s.Path); err != nil {
			return err
		}
		o.Log.Info("a file is set aside until the next clean stop", slog.String("file", s.Path+setAsideSuffix))
		o.Point("takeover:aside " + filepath.Base(s.Path))
	}
	return plainjson.SyncDir(dir)
}

// databaseFiles returns the names of the files that belong to the database at a path.
func databaseFiles(path string) []string { return []string{path + "-wal", path + "-shm", path} }

// setAside renames an old file and the files that belong to it.
func setAside(path string) error {
	to := databaseFiles(path + setAsideSuffix)
	for i, name := range databaseFiles(path) {
		if err := os.Rename(name, to[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// RemoveBefore removes the files that were set aside. They contain what people said.
func RemoveBefore(dir string) error {
	var errs []error
	for _, name := range []string{BusFile, BookFile} {
		for _, path := range databaseFiles(filepath.Join(dir, name+setAsideSuffix)) {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove what was set aside: %w", err)
	}
	return nil
}
