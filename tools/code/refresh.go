package code

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/code/symbols"
	"parley/tools/ignore"
)

// Limits of one index, and of one call that brings it up to date.
const (
	maxFiles   = 20_000
	maxBytes   = 64 << 20 // of source files
	maxSymbols = 200_000
	maxTime    = 2 * time.Second
)

// timestampGranularity is the resolution that file timestamps are assumed to have: two changes of a file closer together
// than this may leave the same timestamp. A file that was read that soon after a change is read again.
const timestampGranularity = 2 * time.Second

// errWalkCut ends a walk early.
var errWalkCut = errors.New("the index was cut")

// A listing is the list of the files below a path.
type listing struct {
	from      string
	files     []listedFile
	cutReason string // why some files were not looked at, worded for the model; "" if all were
	skipped   bool   // ignored files were left out
}

// A listedFile is one file in a listing.
type listedFile struct {
	name     string
	size     int64
	language string
	symbols  []symbols.Symbol
}

// A refresh is one walk that brings an index up to date.
type refresh struct {
	index  *index
	finder *symbols.Finder
	dir    fs.FS
	began  time.Time
	bytes  int64
	seen   map[string]bool
	list   listing
}

// refresh brings the index of a session's directory up to date below from, and returns the files there.
func (x *Indexes) refresh(ctx context.Context, session string, dir fs.FS, from string, ignored bool) (listing, error) {
	i, err := x.lock(ctx, session)
	if err != nil {
		return listing{}, err
	}
	defer x.unlock(i)
	filter := ignore.Off()
	if !ignored {
		filter = ignore.New(dir, from)
	}
	r := refresh{index: i, finder: x.finder, dir: dir, began: time.Now(), seen: map[string]bool{}, list: listing{from: from}}
	err = fs.WalkDir(dir, from, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name != from:
			return nil // the entry has gone or may not be read
		case err != nil:
			return err
		case name != from && filter.Skips(name, e.IsDir()):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !e.Type().IsRegular():
			return nil
		}
		return r.visit(ctx, name, e)
	})
	r.list.skipped = filter.Skipped()
	switch {
	case errors.Is(err, errWalkCut):
		return r.list, nil
	case err != nil:
		return listing{}, err
	}
	r.dropGone()
	return r.list, nil
}

// visit lists one file. It reads the file if that is source code and the index isn't up to date for it.
func (r *refresh) visit(ctx context.Context, name string, e fs.DirEntry) error {
	if len(r.list.files) == maxFiles {
		return r.cutWalk("there are more than %d files", maxFiles)
	}
	info, err := e.Info()
	if err != nil {
		return nil //nolint:nilerr // it has gone
	}
	of := listedFile{name: name, size: info.Size(), language: r.finder.Language(name)}
	if of.language != "" && info.Size() <= symbols.MaxFile {
		if r.bytes += info.Size(); r.bytes > maxBytes {
			return r.cutWalk("there is more than %d MB of source code", maxBytes>>20)
		}
		known := r.index.files[name]
		if known == nil || !known.isCurrent(info) {
			if time.Since(r.began) > maxTime {
				return r.cutWalk("reading the source code takes longer than %v, and the next call goes on from here", maxTime)
			}
			if known, err = r.read(ctx, name, info); err != nil {
				return err
			}
		}
		if known != nil {
			of.symbols = known.symbols
		}
		r.seen[name] = true
	}
	r.list.files = append(r.list.files, of)
	return nil
}

// cutWalk ends the walk early: it records why, in words for the model, and returns errWalkCut.
func (r *refresh) cutWalk(format string, args ...any) error {
	r.list.cutReason = fmt.Sprintf("only %d files were searched: ", len(r.list.files)) + fmt.Sprintf(format, args...) + "; give a path"
	return errWalkCut
}

// isCurrent reports whether a file is unchanged since it was read.
func (f *file) isCurrent(info fs.FileInfo) bool {
	inode, changed := identityOf(info)
	return f.size == info.Size() && f.modified.Equal(info.ModTime()) && f.inode == inode && f.changed.Equal(changed) && f.read.Sub(f.modified) > timestampGranularity
}

// read reads the symbols of a file into the index; nil if it cannot be read.
func (r *refresh) read(ctx context.Context, name string, info fs.FileInfo) (*file, error) {
	r.index.drop(name)
	if r.index.symbols >= maxSymbols {
		r.dropUnseen() // forget files that only earlier calls have searched, to make room
	}
	if r.index.symbols >= maxSymbols {
		return nil, r.cutWalk("they declare more than %d symbols", maxSymbols)
	}
	read := time.Now()
	content, ok := readText(r.dir, name, symbols.MaxFile)
	if !ok {
		return nil, ctx.Err() // the file has gone, or is not text
	}
	known := &file{size: info.Size(), modified: info.ModTime(), read: read, symbols: r.finder.Find(name, content)}
	known.inode, known.changed = identityOf(info)
	r.index.files[name] = known
	r.index.symbols += len(known.symbols)
	return known, nil
}

// drop removes a file from the index.
func (i *index) drop(name string) {
	if known := i.files[name]; known != nil {
		i.symbols -= len(known.symbols)
		delete(i.files, name)
	}
}

// dropUnseen removes from the index the files that the walk hasn't come to yet.
func (r *refresh) dropUnseen() {
	for name := range r.index.files {
		if !r.seen[name] {
			r.index.drop(name)
		}
	}
}

// dropGone removes from the index the files that no longer exist.
func (r *refresh) dropGone() {
	for name := range r.index.files {
		if !r.seen[name] && (r.list.from == "." || name == r.list.from || strings.HasPrefix(name, r.list.from+"/")) {
			r.index.drop(name)
		}
	}
}

// readText reads a text of at most most bytes. It returns false if the file is longer, cannot be read or is not
// text.
func readText(dir fs.FS, name string, most int64) (string, bool) {
	f, err := dir.Open(name)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil || info.Size() > most {
		return "", false
	}
	content := make([]byte, info.Size()) // the next call reads what is added meanwhile
	n, err := io.ReadFull(f, content)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || tools.IsBinary(content[:min(n, tools.SniffBytes)]) {
		return "", false
	}
	return string(content[:n]), true
}
