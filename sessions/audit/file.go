package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parley/sessions"
	"parley/tools/plainjson"
)

// fileParts is into how many parts the allowed bytes are divided: no file becomes larger than one part, and the
// rotated files together have the others.
const fileParts = 8

// A File is a log file of JSON lines. When it becomes large or a day is over, it is rotated: it is
// renamed to its name and a time, and a new one is begun.
type File struct {
	path string
	most int64 // bytes of one file

	mu     sync.Mutex
	file   *os.File // nil until something is written, or Check is called
	closed bool
	size   int64
	began  time.Time
}

// NewFile returns the File at path. The file is created when the first record is written, readable by its
// owner alone. All rotated files and the current one together have at most maxBytes.
func NewFile(path string, maxBytes int64) *File { return &File{path: path, most: maxBytes / fileParts} }

// Check creates the file if there is none, and returns an error if it cannot be written.
func (f *File) Check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

func (f *File) open() error {
	if f.closed {
		return os.ErrClosed
	}
	if err := CheckRegular(f.path); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	about, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size, f.began = file, about.Size(), about.ModTime()
	if f.size == 0 {
		f.began = time.Now()
	}
	return nil
}

// CheckRegular returns an error if something other than a regular file is at path. Only a regular file
// can be renamed and rewritten, and opening a named pipe would wait until somebody opens its other end.
func CheckRegular(path string) error {
	about, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !about.Mode().IsRegular():
		return fmt.Errorf("%s isn't a regular file", path)
	}
	return nil
}

// Write appends a record as one line.
func (f *File) Write(r sessions.AuditRecord) error {
	line, err := plainjson.Marshal(r)
	if err != nil {
		return fmt.Errorf("write to the audit's file: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.write(append(line, '\n'), r.At); err != nil {
		return fmt.Errorf("write to the audit's file: %w", err)
	}
	return nil
}

func (f *File) write(line []byte, at time.Time) error {
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	if f.size > 0 && (f.size+int64(len(line)) > f.most || day(at) != day(f.began)) {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return err
}

// day returns the day of a time in UTC.
func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// rotate renames the file, begins a new one, and deletes the oldest ones if they are too large together.
func (f *File) rotate() error {
	if err := f.file.Close(); err != nil {
		return err
	}
	f.file = nil
	if err := os.Rename(f.path, f.path+"."+time.Now().UTC().Format("20060102T150405.000000000")); err != nil {
		return errors.Join(err, f.open())
	}
	if err := f.open(); err != nil {
		return err
	}
	old, err := f.rotatedFiles()
	if err != nil {
		return err
	}
	room := f.most * (fileParts - 1)
	for _, path := range slices.Backward(old) {
		about, wrong := os.Stat(path)
		if wrong == nil {
			if room -= about.Size(); room < 0 {
				wrong = os.Remove(path)
			}
		}
		err = errors.Join(err, wrong)
	}
	return err
}

// rotatedFiles lists the rotated files, the oldest first.
func (f *File) rotatedFiles() ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		stamp, ok := bytes.CutPrefix([]byte(e.Name()), []byte(filepath.Base(f.path)+"."))
		if _, err := time.Parse("20060102T150405.000000000", string(stamp)); ok && err == nil {
			found = append(found, filepath.Join(filepath.Dir(f.path), e.Name()))
		}
	}
	slices.Sort(found)
	return found, nil
}

// drop deletes the files whose last record is older than before, and what is left of a rewrite that a
// crash interrupted.
func (f *File) drop(before time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, err := f.rotatedFiles()
	if err != nil {
		return err
	}
	for _, path := range append(old, f.path) {
		if wrong := os.Remove(path + ".new"); wrong != nil && !errors.Is(wrong, fs.ErrNotExist) {
			err = errors.Join(err, wrong)
		}
		about, wrong := os.Stat(path)
		if wrong == nil && about.Size() > 0 && about.ModTime().Before(before) {
			wrong = f.remove(path)
		}
		if !errors.Is(wrong, fs.ErrNotExist) {
			err = errors.Join(err, wrong)
		}
	}
	return err
}

// remove deletes one of the files. If it is the current one, the next record begins a new file.
func (f *File) remove(path string) (err error) {
	if path == f.path && f.file != nil {
		err = f.file.Close()
		f.file = nil
	}
	return errors.Join(err, os.Remove(path))
}

// Forget erases the arguments, the person and the detail in the records, in all files, for which match returns true.
// It returns how many such records there were.
func (f *File) Forget(match func(sessions.AuditRecord) bool) (n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old, err := f.rotatedFiles()
	if err != nil {
		return 0, fmt.Errorf("forget in the audit's files: %w", err)
	}
	for _, path := range append(old, f.path) {
		found, wrong := forget(path, match)
		n += found
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("forget in the audit's file %s: %w", path, wrong))
		}
	}
	if f.file == nil || n == 0 {
		return n, err
	}
	began := f.began // the current file may have been replaced
	err = errors.Join(err, f.file.Close(), f.open())
	f.began = began
	return n, err
}

// forget does the work of Forget in one file: it rewrites the file, whole or not at all, and
// returns how many records were changed.
func forget(path string, match func(sessions.AuditRecord) bool) (n int, err error) {
	if err := CheckRegular(path); err != nil {
		return 0, err
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var out bytes.Buffer
	lines := bufio.NewReader(bytes.NewReader(raw))
	for {
		line, end := lines.ReadBytes('\n')
		var r sessions.AuditRecord
		if json.Unmarshal(line, &r) == nil && len(r.Arguments)+len(r.By)+len(r.Detail) > 0 && match(r) {
			r.Arguments, r.By, r.Detail = nil, "", ""
			if line, err = plainjson.Marshal(r); err != nil {
				return n, err
			}
			line = append(line, '\n')
			n++
		}
		out.Write(line)
		if end != nil {
			break
		}
	}
	if n == 0 {
		return 0, nil
	}
	about, err := os.Stat(path)
	if err != nil {
		return n, err
	}
	if err := plainjson.ReplaceFileBytes(path, out.Bytes()); err != nil {
		return n, err
	}
	return n, os.Chtimes(path, about.ModTime(), about.ModTime()) // drop tells the age of a file by these times
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}
