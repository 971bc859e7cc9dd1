package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// maxDigestDepth bounds how deep a digest looks; each folder on the way is open meanwhile.
	maxDigestDepth = 256
	// digestTries is how often a digest is begun anew because something has changed meanwhile.
	digestTries = 3
	// clockTick is how far apart two changes of a file may be and leave it the same times, on
	// systems whose clock for them is coarse.
	clockTick = 20 * time.Millisecond
)

// ErrChanging says that a directory changes all the time, so that no digest of it is true.
var ErrChanging = errors.New("its files change while they are compared")

// Digest returns a hash of everything in the directory: of each file and folder the name, the kind
// and who may run it, where a link leads, and the content of each file. If nothing has changed it is
// the same, whichever process makes it. It reads all files, so that ctx has to bound it.
func (d *Dir) Digest(ctx context.Context) (string, error) {
	for range digestTries {
		read, err := d.walkDigest(ctx, true)
		if err != nil {
			return "", err
		}
		// Who has seen that a file was read could write it then: that shows in its times.
		after, err := d.walkDigest(ctx, false)
		if err != nil {
			return "", err
		}
		if read.times == after.times && !read.isFresh() {
			return read.contents, nil
		}
		select {
		case <-time.After(clockTick):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return "", ErrChanging
}

// DigestTimes returns a hash of the same, with the size, the times and the inode of each file in
// place of its content. It also changes when a file is written with what it had. It reads no file.
func (d *Dir) DigestTimes(ctx context.Context) (string, error) {
	sums, err := d.walkDigest(ctx, false)
	return sums.times, err
}

// digests are the two hashes that one walk makes; contents is "" if no file was read.
type digests struct {
	contents, times string
	began           time.Time
	newest          int64 // when anything was last changed, in nanoseconds
}

// isFresh reports whether something was changed so shortly before the walk that a further change
// need not show in its times. Where another machine's clock sets these, nobody can tell.
func (d digests) isFresh() bool {
	age := d.began.UnixNano() - d.newest
	return age > -int64(clockTick) && age < int64(clockTick)
}

// A digestWalk goes through a directory once.
type digestWalk struct {
	ctx      context.Context //nolint:containedctx // it is one walk's
	contents hash.Hash       // nil if no file is read
	times    hash.Hash
	newest   int64
}

func (d *Dir) walkDigest(ctx context.Context, read bool) (digests, error) {
	began := time.Now()
	w := &digestWalk{ctx: ctx, times: sha256.New()}
	if read {
		w.contents = sha256.New()
	}
	err := d.withOpenDir(".", func(s *openDir, _ string) error { return w.addFolder(s.root, 1) })
	if err != nil {
		return digests{}, err
	}
	sums := digests{times: hex.EncodeToString(w.times.Sum(nil)), began: began, newest: w.newest}
	if read {
		sums.contents = hex.EncodeToString(w.contents.Sum(nil))
	}
	return sums, nil
}

// write adds a text to both hashes.
func (w *digestWalk) write(format string, args ...any) {
	fmt.Fprintf(w.times, format, args...)
	if w.contents != nil {
		fmt.Fprintf(w.contents, format, args...)
	}
}

// addFolder adds everything in a folder, and its end.
func (w *digestWalk) addFolder(dir *os.Root, depth int) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.addItem(dir, name, depth); err != nil {
			return err
		}
	}
	w.write(")\n")
	return nil
}

// addItem adds one path, and everything in it if it is a folder. What is gone when it is looked at is
// missed, and the walk after this one sees that.
func (w *digestWalk) addItem(dir *os.Root, name string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	w.write("%q %s", name, info.Mode())
	w.newest = max(w.newest, changedNanos(info))
	stamp := fmt.Sprintf(" %s %d %d %d\n", identity(info), info.Size(), modifiedNanos(info), changedNanos(info))
	switch mode := info.Mode(); {
	case mode.IsDir():
		// The times of a folder change with its entries, which are looked at themselves.
		fmt.Fprintf(w.times, " %s", identity(info))
		return w.descend(dir, name, depth, stamp)
	case mode&fs.ModeSymlink != 0:
		to, err := dir.Readlink(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		w.write(" %q\n", to)
		_, _ = io.WriteString(w.times, stamp)
		return nil
	case mode.IsRegular() && w.contents != nil:
		return w.addFile(dir, name, info, stamp)
	case mode.IsRegular():
		_, _ = io.WriteString(w.times, stamp)
		return nil
	}
	w.write("%s", stamp)
	return nil
}

// descend adds what is in a folder; one that nobody here may look into is known by its own times.
func (w *digestWalk) descend(dir *os.Root, name string, depth int, stamp string) error {
	if depth >= maxDigestDepth {
		return refuse("its folders are nested more than %d deep", maxDigestDepth)
	}
	below, err := dir.OpenRoot(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission):
		w.write("%s", stamp)
		return nil
	case err != nil:
		return err
	}
	w.write(" (\n")
	err = w.addFolder(below, depth+1)
	if errors.Is(err, fs.ErrPermission) {
		w.write("%s", stamp)
		err = nil
	}
	return errors.Join(err, below.Close())
}

// addFile adds a file with its content. Of one that is very long, or that cannot be read, the times
// stand for the rest.
func (w *digestWalk) addFile(dir *os.Root, name string, info fs.FileInfo, stamp string) (err error) {
	_, _ = io.WriteString(w.times, stamp)
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		_, _ = io.WriteString(w.contents, stamp)
		return nil //nolint:nilerr // its times stand for it; if it is gone, the next walk sees that
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() > maxHashedBytes {
		_, _ = io.WriteString(w.contents, stamp)
	}
	content := sha256.New()
	if _, err := io.Copy(content, io.LimitReader(cancellableReader{w.ctx, f}, maxHashedBytes)); err != nil {
		return err
	}
	fmt.Fprintf(w.contents, " %x\n", content.Sum(nil))
	return nil
}
