// Package backup writes all data of a home into one file while the bot serves, and restores a home from that file.
//
// A backup is what a power failure at one instant would have left: the databases of the bus, the sessions and the
// channels are copied as they were at the same moment, so a restored home is in a state like that after a crash.
// The files of the workspaces are read right after that; a file may be newer than its session's log, by as long as
// the backup takes, but never older. Configuration, tokens and secrets are not part of it, nor are sockets and
// locks.
//
// The file is a compressed tar. Its last entry lists all others with their
// checksums, so that a restore notices a file that was cut short or altered before it
// changes anything.
//
// The files, in reading order: backup.go writes a backup; progress.go says how far it is; check.go verifies one; file.go
// does both with a file; restore.go
// unpacks it, in a directory that scratch.go makes, and place.go moves the parts to their
// places, which can be repeated after a crash; walk.go opens folders one from the other;
// stat_unix.go gets information about files from the system.
package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"parley/sessions/sqldb"
	"parley/sessions/workspace"
	"parley/tools/plainjson"
)

// format is the version of the backup's format that this release writes, and the newest that it
// can read.
const format = 1

const (
	manifestName = "manifest.json"
	workspaces   = "workspaces" // the folder of the workspaces, in the home and in the backup
)

// databases returns the database files that a home may contain. Data on servers (Redis, PostgreSQL) must be backed
// up there.
func databases() []string { return []string{"bus.db", "sessions.db", "book.db"} }

// A Source says what to back up, and who writes the backup.
type Source struct {
	Home       string // the directory that contains the databases
	Workspaces string // the directory that contains the sessions' workspaces
	// Folders maps an agent to the directory with its sessions, for agents that don't use Workspaces. The backup stores all
	// sessions in one folder.
	Folders map[string]string
	Version string // the release that writes the backup
	// Progress is called again and again, and must be quick; may be nil.
	Progress func(Progress)
}

// A Manifest says what a backup contains.
type Manifest struct {
	Format  int       `json:"format"`
	Version string    `json:"version"` // the release that wrote it
	At      time.Time `json:"at"`      // when the databases were copied
	Files   []File    `json:"files"`
	// Skipped lists names in workspaces that are not plain files: links, pipes, sockets.
	// They are not in the backup.
	Skipped []string `json:"skipped,omitempty"`
	// TooDeep lists folders in workspaces that are nested too deep to be restored. Neither they nor their contents
	// are in the backup.
	TooDeep []string `json:"too_deep,omitempty"`
}

// A File is one file of a backup.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Write writes a backup. The home may be in use, by this or another process.
func Write(ctx context.Context, s Source, w io.Writer) (Manifest, error) {
	m := Manifest{Format: format, Version: s.Version}
	files, err := snapshot(ctx, s, &m)
	defer func() {
		for _, f := range files {
			_ = f.Close() // it was only read
		}
	}()
	if err != nil {
		return m, fmt.Errorf("back up: %w", err)
	}
	zipped, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return m, fmt.Errorf("back up: %w", err)
	}
	size, err := s.sizeOf(ctx.Err)
	if err != nil {
		return m, fmt.Errorf("back up: %w", err)
	}
	for _, f := range files {
		if info, err := f.Stat(); err == nil {
			size += info.Size()
		}
	}
	p := &packer{ctx: ctx.Err, tar: tar.NewWriter(zipped), manifest: &m, meter: s.newMeter(Packing, size)}
	if err := p.pack(files, s); err != nil {
		return m, fmt.Errorf("back up: %w", err)
	}
	if err := errors.Join(p.tar.Close(), zipped.Close()); err != nil {
		return m, fmt.Errorf("back up: %w", err)
	}
	return m, nil
}

// snapshot copies the databases that the home has, and opens the copies. It removes the names of the copies at once, so
// that no copy is left even if this process is killed.
func snapshot(ctx context.Context, s Source, m *Manifest) (files []*os.File, err error) {
	home := s.Home
	if err := Sweep(home); err != nil {
		return nil, err
	}
	dir, release, err := makeScratch(home, backupScratch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir), release()) }()
	var copies []sqldb.Copy
	meter := s.newMeter(Copying, 0)
	for _, name := range databases() {
		from := filepath.Join(home, name)
		info, err := os.Stat(from)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		before := meter.of // the size of the files before this one
		meter.of += info.Size()
		copies = append(copies, sqldb.Copy{From: from, To: filepath.Join(dir, name), Progress: func(done, of int) {
			meter.setDone(before + info.Size()*int64(done)/int64(max(1, of)))
		}})
	}
	if err := sqldb.Snapshot(ctx, copies...); err != nil {
		return nil, err
	}
	m.At = time.Now().UTC()
	for _, c := range copies {
		f, err := os.Open(c.To)
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// A packer writes files and folders into the backup, which is a tar.
type packer struct {
	ctx      func() error // the context's Err; an error ends the work
	tar      *tar.Writer
	manifest *Manifest
	meter    *meter
	measures bool // whether it packs nothing and only adds up sizes
	size     int64
}

func (p *packer) pack(databases []*os.File, s Source) error {
	for _, f := range databases {
		if err := p.packFile(filepath.Base(f.Name()), f, 0o600); err != nil {
			return err
		}
	}
	if err := p.packSessions(s); err != nil {
		return fmt.Errorf("workspaces: %w", err)
	}
	raw, err := plainjson.MarshalIndent(p.manifest, "", "  ")
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: manifestName, Mode: 0o600, Size: int64(len(raw)), ModTime: p.manifest.At}
	if err := p.tar.WriteHeader(header); err != nil {
		return err
	}
	_, err = p.tar.Write(raw)
	return err
}

// packSessions packs the directories of sessions. It leaves out files beside these directories, which belong to no
// session.
func (p *packer) packSessions(s Source) error {
	inRoot := func(name string) bool { _, elsewhere := s.Folders[name]; return !elsewhere }
	if err := p.packSelected(s.Workspaces, inRoot); err != nil {
		return err
	}
	for _, agent := range slices.Sorted(maps.Keys(s.Folders)) {
		if err := p.packSelected(s.Folders[agent], func(name string) bool { return name == agent }); err != nil {
			return err
		}
	}
	return nil
}

// packSelected packs the folders in dir for whose names wanted returns true. It packs nothing if dir doesn't exist.
func (p *packer) packSelected(dir string, wanted func(name string) bool) error {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // a directory's descriptor has no data that could be lost
	return p.packFolder(root, "", 0, wanted)
}

// packFolder packs everything in a folder that is depth levels below its session's. It opens each folder from the
// one above, so that no path has to be resolved again from the top for each item, no matter how deep. wanted
// selects the items; nil means all.
func (p *packer) packFolder(dir *os.Root, name string, depth int, wanted func(name string) bool) error {
	names, err := namesIn(dir)
	if err != nil {
		return errorAt(name, err)
	}
	for _, item := range names {
		if wanted != nil && !wanted(item) {
			continue
		}
		if err := p.ctx(); err != nil {
			return err
		}
		if err := p.packItem(dir, path.Join(name, item), item, depth); err != nil {
			return err
		}
	}
	return nil
}

// packItem packs one file or folder of a workspace. It leaves out what is removed meanwhile, temporary files, and files
// beside the sessions' folders; it records folders that are too deep.
func (p *packer) packItem(dir *os.Root, full, name string, depth int) error {
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // somebody has just removed it
		return nil
	case err != nil:
		return errorAt(full, err)
	case workspace.IsTemporary(name):
		return nil // a write or a removal is in progress
	case !info.IsDir() && depth == 0:
		return nil
	case !info.IsDir() && p.measures:
		p.measure(info)
		return nil
	case !info.IsDir():
		return p.packIfPlain(dir, full, name)
	case depth == maxDepth:
		p.manifest.TooDeep = append(p.manifest.TooDeep, full)
		return nil
	}
	below, err := dir.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errorAt(full, err)
	}
	defer func() { _ = below.Close() }() // a directory's descriptor has no data that could be lost
	if !p.measures {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: path.Join(workspaces, full) + "/", Mode: 0o700, ModTime: p.manifest.At}
		if err := p.tar.WriteHeader(header); err != nil {
			return errorAt(full, err)
		}
	}
	return p.packFolder(below, full, depth+1, nil)
}

// errorAt adds to an error which file or folder it occurred at.
func errorAt(name string, err error) error {
	return fmt.Errorf("%q: %w", shortened(name), err)
}

// packIfPlain packs a plain file. It records anything else as skipped: a link, a pipe, a file that can't be opened, or
// one that has a second name (a hard link), which may be outside the workspace.
func (p *packer) packIfPlain(dir *os.Root, full, name string) error {
	// O_NONBLOCK keeps open from blocking at a pipe.
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer func() { _ = f.Close() }() // it was only read
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && info.Mode().IsRegular() && !hasOtherLinks(info) {
			if err := p.packFile(path.Join(workspaces, full), f, info.Mode().Perm()); err != nil {
				return errorAt(full, err)
			}
			return nil
		}
	}
	p.manifest.Skipped = append(p.manifest.Skipped, full)
	return nil
}

// packFile packs one file with its current length, because the tar states the length before the content. Data
// appended meanwhile is left out; if the file gets shorter, its copy is padded with zeros.
func (p *packer) packFile(name string, f *os.File, mode fs.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode), Size: size, ModTime: info.ModTime(), Format: tar.FormatPAX}
	if err := p.tar.WriteHeader(header); err != nil {
		return err
	}
	sum := sha256.New()
	both := io.MultiWriter(p.tar, sum)
	n, err := io.Copy(both, &cancellableReader{p.ctx, p.meter.read(io.LimitReader(f, size))})
	if err != nil {
		return err
	}
	if _, err := io.CopyN(both, zeros{}, size-n); err != nil {
		return err
	}
	p.manifest.Files = append(p.manifest.Files, File{Name: name, Size: size, SHA256: hexSum(sum)})
	return nil
}

func hexSum(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }

// A cancellableReader fails with the context's error once the context has ended.
type cancellableReader struct {
	ctx func() error
	r   io.Reader
}

func (r *cancellableReader) Read(b []byte) (int, error) {
	if err := r.ctx(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// zeros is an endless reader of zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
