package snapshots

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
)

const copyPrefix = "kept-"

// The reasons why there is no copy of a file.
const (
	reasonTooLarge = "it was too large for me to copy"
	reasonNoRoom   = "there was no room for a copy of it"
	textUnreadable = "I couldn't read it"
)

// A copier makes copies of files as long as there is room for them.
type copier struct {
	history  *history
	mu       sync.Mutex
	used     int64
	existing map[string]bool // by checksum: the copies that exist or are being made
}

// newCopier returns a copier that knows the copies that exist.
func (d *history) newCopier() (*copier, error) {
	k := &copier{history: d, existing: map[string]bool{}}
	names, err := d.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		sum, ok := strings.CutPrefix(name, copyPrefix)
		if !ok {
			continue
		}
		info, err := d.dir.Lstat(name)
		if err != nil {
			return nil, err
		}
		k.existing[sum] = true
		k.used += info.Size()
	}
	return k, nil
}

// hasRoomFor reports whether there is room for a file of that size.
func (k *copier) hasRoomFor(size int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.used+size <= k.history.cfg.MaxBytes
}

// claimRoom reserves room for a copy. had says that there is already a copy with that checksum; room says
// that there is a copy, or room for one.
func (k *copier) claimRoom(sum string, size int64) (had, room bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.existing[sum] {
		return true, true
	}
	if k.used+size > k.history.cfg.MaxBytes {
		return false, false
	}
	k.existing[sum] = true
	k.used += size
	return false, true
}

// readFile returns the entry of a file with its checksum. If keep is not nil, it also makes a copy of the
// file. It returns the zero Entry for a file that no longer exists.
func (d *history) readFile(ctx context.Context, root *os.Root, name string, keep *copier) (e Entry, err error) {
	before, err := statAt(root, name)
	if err != nil || !before.Mode.IsRegular() {
		return before, ignoreMissing(err)
	}
	if before.Size > d.cfg.MaxBytes/4 {
		before.NoCopyReason = reasonTooLarge
		return before, nil
	}
	if keep != nil && !keep.hasRoomFor(before.Size) {
		before.NoCopyReason = reasonNoRoom
		return before, nil
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Entry{}, nil
	case err != nil:
		before.NoCopyReason = textUnreadable
		return before, nil //nolint:nilerr // the reason is in the entry
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		before.NoCopyReason = textUnreadable
		return before, err
	}
	from := &limitedReader{ctx: ctx, from: f, remaining: d.cfg.MaxBytes / 4}
	if keep == nil {
		h := sha256.New()
		if before.Size, err = io.Copy(h, from); err == nil {
			before.Sum = sumOf(h)
		}
	} else {
		err = d.sumAndCopy(&before, from, keep)
	}
	switch {
	case errors.Is(err, errTooLarge):
		before.NoCopyReason = reasonTooLarge
	case ctx.Err() != nil:
		return Entry{}, ctx.Err()
	case err != nil && !errors.Is(err, errStore):
		before.NoCopyReason = textUnreadable
	case err != nil:
		return Entry{}, err
	}
	return before, nil
}

func sumOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// The errors that stop the reading of a file.
var (
	errTooLarge = errors.New("the file is too large")
	errStore    = errors.New("the copy cannot be written")
)

// A limitedReader fails with errTooLarge after left bytes, and with the context's error once the context
// is done.
type limitedReader struct {
	ctx       context.Context //nolint:containedctx // it reads one file
	from      io.Reader
	remaining int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := l.from.Read(p)
	if l.remaining -= int64(n); l.remaining < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// maxInMemory is how many bytes of a file are read into memory before it is known whether there is a copy
// of it.
const maxInMemory = 1 << 20

// sumAndCopy computes a file's checksum, and makes a copy of it if there is none and there is
// room.
func (d *history) sumAndCopy(e *Entry, from io.Reader, keep *copier) error {
	head, err := io.ReadAll(io.LimitReader(from, maxInMemory+1))
	if err != nil {
		return err
	}
	h := sha256.New()
	h.Write(head)
	if len(head) <= maxInMemory {
		e.Sum, e.Size = sumOf(h), int64(len(head))
		had, room := keep.claimRoom(e.Sum, e.Size)
		if e.HasCopy = had || room; !room {
			e.NoCopyReason = reasonNoRoom
		}
		if had || !room {
			return nil
		}
		return d.writeCopy(func(f io.Writer) error { _, err := f.Write(head); return err }, func() string { return e.Sum })
	}
	// The rest is written to the disk before its checksum is known.
	size := int64(len(head))
	if _, room := keep.claimRoom("?"+rand.Text(), e.Size); !room {
		more, err := io.Copy(h, from)
		e.Sum, e.Size, e.NoCopyReason = sumOf(h), size+more, reasonNoRoom
		return err
	}
	var reading error
	err = d.writeCopy(func(f io.Writer) error {
		if _, err := f.Write(head); err != nil {
			return err
		}
		both := io.MultiWriter(f, h)
		var more int64
		more, reading = io.Copy(both, from)
		size += more
		return reading
	}, func() string { return sumOf(h) })
	if reading != nil {
		return reading
	}
	e.Sum, e.Size, e.HasCopy = sumOf(h), size, err == nil
	return err
}

// writeCopy writes a copy under a temporary name and then renames it. fill writes the content, and
// sum returns the content's checksum afterwards.
func (d *history) writeCopy(fill func(io.Writer) error, sum func() string) error {
	temporary := newName()
	f, err := d.dir.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(errStore, err)
	}
	err = fill(f)
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.dir.Rename(temporary, copyPrefix+sum())
	}
	if err != nil {
		return errors.Join(errStore, err, d.removeIfThere(temporary))
	}
	return nil
}

// errDamaged says that a copy is missing, or differs from the file that was copied.
var errDamaged = errors.New("the copy is missing or damaged")

// writeFromCopy writes the copy of an entry's content to a file, and checks it by its
// checksum.
func (d *history) writeFromCopy(f io.Writer, e Entry) (err error) {
	from, err := d.dir.Open(copyPrefix + e.Sum)
	if errors.Is(err, fs.ErrNotExist) {
		return errDamaged
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, h), from); err != nil {
		return err
	}
	if sumOf(h) != e.Sum {
		return errDamaged
	}
	return nil
}
