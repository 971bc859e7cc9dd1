package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"parley/bus/sqlitebus"
)

// These are the errors that callers of this package act on.
var (
	// ErrUsed says that the home already contains data.
	ErrUsed = errors.New("this home is already in use")
	// ErrDamaged says that a backup was cut short or altered, or is not a backup at all.
	ErrDamaged = errors.New("this isn't a complete backup")
	// ErrNewer says that a newer release has written a backup.
	ErrNewer = errors.New("a newer release wrote this backup: restore it with that release")
)

// maxManifest limits the size of the manifest, in bytes.
const maxManifest = 1 << 30

// Options say how a backup is restored.
type Options struct {
	// Force allows a restore into a home that already contains data. That data is moved aside
	// within the home, not deleted.
	Force bool
	// Try, if set, is called with the directory into which the backup was unpacked, before anything
	// is moved. If it returns an error, the home is left as it was.
	Try func(ctx context.Context, dir string) error
	// Point, if set, is called at each step of the restore, where a test may kill the process.
	Point func(name string)
}

// A RestoreResult says what a restore has done.
type RestoreResult struct {
	Manifest
	Aside string `json:"aside,omitempty"` // the directory that contains the previous data
}

// Read restores a backup into the home, which it creates if it is missing. It reads the whole
// backup and verifies its checksums before it changes the home. If the process dies meanwhile, the
// home contains its old data or, once Finish was called, that of the backup; never a mixture. Read
// refuses a home that a server is using and, unless Force is set, one that contains data (ErrUsed).
func Read(ctx context.Context, r io.Reader, home string, o Options) (RestoreResult, error) {
	if o.Point == nil {
		o.Point = func(string) {}
	}
	done, err := restore(ctx, r, home, o)
	if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	return done, nil
}

func restore(ctx context.Context, r io.Reader, home string, o Options) (done RestoreResult, err error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return done, err
	}
	lock, err := sqlitebus.Lock(filepath.Join(home, databases()[0]))
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := errors.Join(finish(home, o.Point), Sweep(home)); err != nil {
		return done, err
	}
	used, err := dataIn(home)
	if err != nil {
		return done, err
	}
	if len(used) > 0 && !o.Force {
		return done, fmt.Errorf("%w: %s contains %s", ErrUsed, home, strings.Join(used, ", "))
	}
	dir, release, err := makeScratch(home, restoreScratch)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir), release()) }() // commit renames dir, so nothing is left to remove then
	if done.Manifest, err = unpack(ctx, r, dir, false); err != nil {
		return done, err
	}
	o.Point("unpacked")
	if o.Try != nil {
		if err := o.Try(ctx, dir); err != nil {
			return done, err
		}
	}
	if len(used) > 0 {
		done.Aside = filepath.Join(home, oldDataDirName(home))
	}
	if err := commit(home, dir, done.Aside, o.Point); err != nil {
		return done, err
	}
	return done, finish(home, o.Point)
}

// dataIn lists the names of the databases and data folders that the home already contains.
func dataIn(home string) (used []string, err error) {
	for _, name := range restoredNames() {
		_, err := os.Lstat(filepath.Join(home, name))
		if err == nil {
			used = append(used, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return used, nil
}

// unpack reads a whole backup, writes its files into dir, and verifies that it is complete and
// unaltered. If planned is true, it writes only the databases, and plans the files of workspaces.
func unpack(ctx context.Context, r io.Reader, dir string, planned bool) (m Manifest, err error) {
	zipped, err := gzip.NewReader(&cancellableReader{ctx.Err, r})
	if err != nil {
		return m, asDamaged(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, err
	}
	defer func() { _ = root.Close() }() // a directory's descriptor has no data that could be lost
	u := &unpacker{tar: tar.NewReader(zipped), trail: openFolders{top: root}, files: map[string]File{}}
	if planned {
		u.plan = &plan{files: map[string]bool{}, folders: map[string]bool{}}
	}
	if err := errors.Join(u.unpack(), u.trail.closeAllBut(0)); err != nil {
		return m, err
	}
	// The checksum of the compressed data is at its very end, after the end of the tar.
	if _, err := io.Copy(io.Discard, zipped); err != nil {
		return m, asDamaged(err)
	}
	return u.manifest, u.checkManifest()
}

// asDamaged wraps a reading error in ErrDamaged, unless the context has ended the
// reading.
func asDamaged(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// An unpacker reads the files of a backup, which is a tar, and writes them.
type unpacker struct {
	tar         *tar.Reader
	trail       openFolders
	plan        *plan           // if set, files of workspaces are planned, not written
	files       map[string]File // by name
	manifest    Manifest
	hasManifest bool // whether the manifest was read
}

func (u *unpacker) unpack() error {
	for {
		h, err := u.tar.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return asDamaged(err)
		}
		if u.hasManifest {
			return fmt.Errorf("%w: there's extra data after its list of files", ErrDamaged)
		}
		switch {
		case h.Typeflag == tar.TypeReg && h.Name == manifestName:
			err = u.readManifest()
		case h.Typeflag == tar.TypeDir && isPart(strings.TrimSuffix(h.Name, "/")):
			err = u.makeFolder(strings.TrimSuffix(h.Name, "/"))
		case h.Typeflag == tar.TypeReg && isPart(h.Name):
			err = u.unpackFile(h)
		default:
			err = fmt.Errorf("%w: %q doesn't belong in a backup", ErrDamaged, h.Name)
		}
		if err != nil {
			return err
		}
	}
}

// isPart reports whether a backup may contain something with that name: a database, or a path that
// stays below the workspaces.
func isPart(name string) bool {
	return slices.Contains(databases(), name) ||
		strings.HasPrefix(name, workspaces+"/") && path.Clean(name) == name && filepath.IsLocal(name) && !strings.ContainsRune(name, 0)
}

// makeFolder makes a folder, or adds it to the plan.
func (u *unpacker) makeFolder(name string) error {
	if u.plan != nil {
		return u.plan.addFolder(name)
	}
	if _, err := u.trail.openDir(name); err != nil {
		return errorAt(name, err)
	}
	return nil
}

// unpackFile writes a file. With a plan, it adds the file to the plan, and writes it only if it's a
// database.
func (u *unpacker) unpackFile(h *tar.Header) error {
	dir, name := path.Split(h.Name)
	if dir != "" {
		if err := u.makeFolder(path.Clean(dir)); err != nil {
			return err
		}
	}
	if u.plan != nil {
		if err := u.plan.addFile(h.Name); err != nil {
			return err
		}
		if dir != "" {
			return u.copyContent(h, nil)
		}
	}
	in, err := u.trail.openDir(path.Clean(dir))
	if err != nil {
		return errorAt(h.Name, err)
	}
	f, err := in.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: it contains %q twice", ErrDamaged, shortened(h.Name))
	}
	if err != nil {
		return errorAt(h.Name, err)
	}
	return errors.Join(u.copyContent(h, f), f.Close())
}

// copyContent copies a file's content from the backup into f, and records its checksum. If f is
// nil, it only reads the content for the checksum.
func (u *unpacker) copyContent(h *tar.Header, f *os.File) error {
	sum := sha256.New()
	read := &erringReader{r: u.tar}
	to := io.Writer(sum)
	if f != nil {
		to = io.MultiWriter(f, sum)
	}
	n, err := io.Copy(to, read)
	if read.err != nil {
		return asDamaged(read.err)
	}
	if err != nil {
		return errorAt(h.Name, err) // writing failed, but the backup is fine
	}
	u.files[h.Name] = File{Name: h.Name, Size: n, SHA256: hexSum(sum)}
	if f == nil {
		return nil
	}
	if err := f.Chmod(fs.FileMode(h.Mode).Perm() | 0o600); err != nil {
		return err
	}
	return f.Sync()
}

// An erringReader remembers its error, because io.Copy doesn't say whether reading or writing
// failed.
type erringReader struct {
	r   io.Reader
	err error
}

func (f *erringReader) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err = err
	}
	return n, err
}

// readManifest reads the list of all files, which is the last entry of a backup.
func (u *unpacker) readManifest() error {
	if err := json.NewDecoder(io.LimitReader(u.tar, maxManifest)).Decode(&u.manifest); err != nil {
		return asDamaged(err)
	}
	u.hasManifest = true
	return nil
}

// checkManifest returns an error if what was unpacked differs from what the manifest lists, or if
// a newer release wrote the backup.
func (u *unpacker) checkManifest() error {
	switch {
	case !u.hasManifest:
		return fmt.Errorf("%w: its list of files is missing", ErrDamaged)
	case u.manifest.Format > format:
		return fmt.Errorf("%w (%s)", ErrNewer, u.manifest.Version)
	case u.manifest.Format < 1:
		return fmt.Errorf("%w: its format %d is unknown", ErrDamaged, u.manifest.Format)
	}
	for _, want := range u.manifest.Files {
		got, ok := u.files[want.Name]
		if !ok {
			return fmt.Errorf("%w: %q is missing", ErrDamaged, want.Name)
		}
		if got != want {
			return fmt.Errorf("%w: %q was altered", ErrDamaged, want.Name)
		}
		delete(u.files, want.Name)
	}
	for name := range u.files {
		return fmt.Errorf("%w: %q isn't on its list of files", ErrDamaged, name)
	}
	return nil
}
