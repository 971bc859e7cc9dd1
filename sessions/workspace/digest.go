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
	// maxDigestDepth limits how deep a digest goes; each folder on the way is open meanwhile.
	maxDigestDepth = 256
	// maxDigestAttempts is how often a digest is started again because something changed meanwhile.
	maxDigestAttempts = 3
	// clockTick is the resolution of file timestamps on systems with a coarse clock: two changes of a
	// file that are closer together than this may leave the same timestamp.
	clockTick = 20 * time.Millisecond
)

// ErrChanging says that a directory keeps changing, so that no digest of it would be true.
var ErrChanging = errors.New("its files change while they are compared")

// Digest returns a hash of everything in the directory: the name of each file and folder, its kind and who may run
// it, the target of each link, and the content of each file. For what this process cannot read, and for very long
// files, the times of the last change count too. If nothing has changed, any process gets the same hash. If
// something keeps changing meanwhile, the error is ErrChanging. It refuses folders that are nested more than
// maxDigestDepth deep. Digest reads all files, so ctx should limit it.
func (d *Dir) Digest(ctx context.Context) (string, error) {
	for range maxDigestAttempts {
		read, err := d.walkDigest(ctx, true)
		if err != nil {
			return "", err
		}
		// Somebody who saw that a file had been read could have written it afterwards; its times would
		// show that.
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

// DigestTimes returns a hash of the same, but with the size, the times and the inode of each file in
// place of its content. It also changes when a file is overwritten with the same content. It reads no
// file.
func (d *Dir) DigestTimes(ctx context.Context) (string, error) {
	sums, err := d.walkDigest(ctx, false)
	return sums.times, err
}

// digests are the two hashes that one walk computes; contents is "" if no file was read.
type digests struct {
	contents, times string
	walkStarted     time.Time
	newest          int64 // when anything was last changed, in nanoseconds
}

// isFresh reports whether something was changed so shortly before the walk that another change might not
// show in its times. If another machine's clock sets the times, this cannot be known.
func (d digests) isFresh() bool {
	age := d.walkStarted.UnixNano() - d.newest
	return age > -int64(clockTick) && age < int64(clockTick)
}

// A digestWalk walks through a directory once.
type digestWalk struct {
	ctx      context.Context //nolint:containedctx // the context of one walk
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
	sums := digests{times: hex.EncodeToString(w.times.Sum(nil)), walkStarted: began, newest: w.newest}
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

// addFolder adds everything in a folder, and marks its end.
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

// addItem adds one path and, if it is a folder, everything in it. It skips a path that no longer exists,
// and the next walk notices that.
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
	stamp := fmt.Sprintf(" %s %d %d %d\n", sharedIdentity(info), info.Size(), modifiedNanos(info), changedNanos(info))
	switch mode := info.Mode(); {
	case mode.IsDir():
		// The times of a folder change with its entries, which are added themselves.
		fmt.Fprintf(w.times, " %s", sharedIdentity(info))
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

// descend adds the content of a folder. For a folder that this process may not read, it adds the folder's
// own times.
func (w *digestWalk) descend(dir *os.Root, name string, depth int, stamp string) error {
	if depth >= maxDigestDepth {
		return refusalf("its folders are nested more than %d deep", maxDigestDepth)
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

// addFile adds a file with its content. For a very long file, it adds the times and the beginning; for
// one that cannot be read, the times.
func (w *digestWalk) addFile(dir *os.Root, name string, info fs.FileInfo, stamp string) (err error) {
	_, _ = io.WriteString(w.times, stamp)
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		_, _ = io.WriteString(w.contents, stamp)
		return nil //nolint:nilerr // its times are added instead; if the file no longer exists, the next walk notices that
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
