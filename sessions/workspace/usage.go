package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

const (
	// blockSize is the unit in which sizes are counted; an empty file and a folder count as one unit.
	blockSize = 4096
	// maxItems is the most files and folders that a session's directory may have. Beyond it no more are
	// created.
	maxItems = 20_000
	// maxMeasuredItems limits how many files and folders a measurement looks at.
	maxMeasuredItems = 200_000
	// maxMeasuredDepth limits how deep a measurement goes: nothing is written below maxDepth.
	maxMeasuredDepth = 2 * maxDepth
)

// usage is the space that files and folders take up, and their number.
type usage struct {
	bytes int64
	items int
}

func (u *usage) add(more usage) {
	u.bytes += more.bytes
	u.items += more.items
}

// roundUp returns how many bytes a file of that size counts against the quota.
func roundUp(size int64) int64 {
	return max(1, (size+blockSize-1)/blockSize) * blockSize
}

// usageOfFolders returns the usage of n empty folders.
func usageOfFolders(n int) usage { return usage{int64(n) * blockSize, n} }

// usageOf returns the usage of one file or folder.
func usageOf(info fs.FileInfo) usage {
	if info.Mode().IsRegular() {
		return usage{roundUp(diskSize(info)), 1}
	}
	return usage{blockSize, 1}
}

// WithContext returns the same directory for work that ends with ctx: measuring a large directory takes a
// long time, and stops when ctx ends. It may be combined with WritableUntil.
func (d *Dir) WithContext(ctx context.Context) *Dir {
	return &Dir{workspaces: d.workspaces, name: d.name, writableUntil: d.writableUntil, checkWorkEnded: ctx.Err}
}

// reserve refuses a write that does not fit under the quota. The directory is measured before the first
// write. From then on reserve adds up the sizes of writes (more), and measures the directory again before
// it refuses one, because a child process may have removed something.
func (s *openDir) reserve(d *Dir, more usage) error {
	most := d.workspaces.maxBytes
	if most <= 0 || more.bytes <= 0 && more.items <= 0 && s.measured {
		return nil
	}
	fits := func() error {
		switch {
		case more.items > 0 && s.usage.items+more.items > maxItems:
			return fmt.Errorf("%w: it contains %d of at most %d files and folders, and %d more do not fit: write to existing files instead", ErrQuota, s.usage.items, maxItems, more.items)
		case more.bytes > 0 && s.usage.bytes+more.bytes > most:
			return fmt.Errorf("%w: it contains %d of at most %d bytes, and %d more do not fit (each file and folder counts in blocks of %d): make other files shorter first",
				ErrQuota, s.usage.bytes, most, more.bytes, blockSize)
		}
		return nil
	}
	if s.measured && fits() == nil {
		return nil
	}
	if err := s.measure(d.checkWorkEnded); err != nil {
		return err
	}
	return fits()
}

// measure measures the directory's usage. If ended is set and returns an error, measure stops with that
// error. It returns ErrQuota if there are more than maxMeasuredItems files and folders.
func (s *openDir) measure(ended func() error) error {
	m := measurement{ended: ended}
	if err := m.addFolder(s.root, 1); err != nil {
		return err
	}
	s.usage, s.measured = m.total, true
	return nil
}

// A measurement adds up the sizes of everything in a directory, down to maxMeasuredDepth. It opens each folder
// from the one above it, so that the kernel need not walk the whole path of every item.
type measurement struct {
	total usage
	ended func() error
}

// addFolder adds everything in a folder.
func (m *measurement) addFolder(dir *os.Root, depth int) (err error) {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if err := m.addItem(dir, name, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// addItem adds an item of a folder and, if it is a folder itself, everything in it. It skips what is gone or may not
// be looked at. It returns ErrQuota after maxMeasuredItems items.
func (m *measurement) addItem(dir *os.Root, name string, depth int) error {
	if m.ended != nil && m.ended() != nil {
		return m.ended()
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return ignoreGone(err)
	}
	m.total.add(usageOf(info))
	if m.total.items > maxMeasuredItems {
		return fmt.Errorf("%w: it contains more than %d files and folders", ErrQuota, maxMeasuredItems)
	}
	if !info.IsDir() || depth >= maxMeasuredDepth {
		return nil
	}
	below, err := dir.OpenRoot(name)
	if err != nil {
		return ignoreGone(err)
	}
	return errors.Join(m.addFolder(below, depth+1), below.Close())
}

// ignoreGone replaces the error for an item that no longer exists, or that may not be looked at, by nil.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) {
		return nil
	}
	return err
}

// Quota returns how much the directory may contain; zeros if there is no limit. It is for code that
// writes to the directory without a Dir.
func (d *Dir) Quota() (bytes int64, items int) {
	if d.workspaces.maxBytes <= 0 {
		return 0, 0
	}
	return d.workspaces.maxBytes, maxItems
}

// MarkChanged says that something was written to the directory without a Dir. So the directory is
// measured again before the next write.
func (d *Dir) MarkChanged() error {
	s, err := d.workspaces.acquire(d.name)
	if err != nil {
		return err
	}
	defer d.workspaces.release(s)
	s.writes.Lock()
	defer s.writes.Unlock()
	s.measured = false
	return nil
}

// ListFull lists the directories that were written to lately and use at least that part of their quota
// (0.9 is nine tenths), by their names below the root or the agent's folder, sorted. It uses earlier
// measurements, and leaves out a directory that is being written to.
func (w *Workspaces) ListFull(part float64) []string {
	if w.maxBytes <= 0 {
		return nil
	}
	var full []string
	for _, own := range w.byAgent {
		full = append(full, own.ListFull(part)...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, s := range w.dirs {
		if !s.writes.TryLock() {
			continue // it is included the next time
		}
		if s.measured && s.usage.usedPart(w.maxBytes) >= part {
			full = append(full, name)
		}
		s.writes.Unlock()
	}
	slices.Sort(full)
	return full
}

// UsedPart measures which part of its quota a directory uses (1 is all of it), given its name below the root or the
// agent's folder; 0 if it does not exist, or has no quota.
func (w *Workspaces) UsedPart(ctx context.Context, name string) (float64, error) {
	w = w.workspacesOf(name)
	if _, err := w.base.Lstat(name); errors.Is(err, fs.ErrNotExist) || w.maxBytes <= 0 {
		return 0, nil
	}
	s, err := w.acquire(name)
	if err != nil {
		return 0, err
	}
	defer w.release(s)
	s.writes.Lock()
	defer s.writes.Unlock()
	if err := s.measure(ctx.Err); err != nil {
		return 0, err
	}
	return s.usage.usedPart(w.maxBytes), nil
}

// usedPart returns which part of the quota is used, by bytes or by items, whichever is greater.
func (u usage) usedPart(most int64) float64 {
	return max(float64(u.bytes)/float64(most), float64(u.items)/maxItems)
}
