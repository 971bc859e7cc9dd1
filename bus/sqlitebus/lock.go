package sqlitebus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// An InUseError says that a process, perhaps this one, has the bus open.
type InUseError struct {
	Path string // the path of the database
	PID  int    // 0 if unknown
}

// Error names the folder and, if known, the process that has it open. The lock covers the whole folder;
// the database file for which it is named need not exist.
func (e *InUseError) Error() string {
	by := "another process"
	if e.PID != 0 {
		by = fmt.Sprint("process ", e.PID)
	}
	return "the folder " + filepath.Dir(e.Path) + " is in use by " + by
}

// Lock keeps every process, this one included, from opening the bus at path until the lock
// is closed. Backups and restores take it while they copy or replace the file. It returns
// an *InUseError while a process has the bus open.
func Lock(path string) (io.Closer, error) {
	f, err := lockFile(path)
	if err != nil {
		return nil, fmt.Errorf("lock bus: %w", err)
	}
	return f, nil
}

// lockFile takes the lock beside path. The kernel frees it when the process dies, however
// that happens. The lock file itself stays, because removing it would let two processes
// lock two files of the same name.
func lockFile(path string) (*lockedFile, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = &InUseError{Path: path, PID: readPID(f)}
		}
		return nil, errors.Join(err, f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", f.Name(), err), f.Close())
	}
	return &lockedFile{f}, nil
}

// A lockedFile is a file that this process has locked.
type lockedFile struct{ file *os.File }

// Close frees the lock before it closes the file: a child process that is just being
// started has the open file for a moment as well, and would keep the lock longer.
func (l *lockedFile) Close() error {
	return errors.Join(flock(l.file, syscall.LOCK_UN), l.file.Close())
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	return err
}

// readPID returns the holder's process id, or 0 if the holder has not written it yet.
func readPID(f *os.File) int {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return 0
	}
	return pid
}
