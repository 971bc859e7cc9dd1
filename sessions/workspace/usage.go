package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// block is the unit in which a file counts; an empty one and a folder count one.
	block = 4096
	// maxItems bounds how many files and folders a directory may hold for a new
	// one to be made.
	maxItems = 20_000
	// maxMeasured bounds how many are looked at to find out what there is.
	maxMeasured = 200_000
	// maxMeasuredDepth bounds how deep it is looked: nothing is written below maxDepth.
	maxMeasuredDepth = 2 * maxDepth
)

// usage is what files and folders take.
type usage struct {
	bytes int64
	items int
}

func (u *usage) add(more usage) {
	u.bytes += more.bytes
	u.items += more.items
}

// counted is what so many bytes of a file count.
func counted(size int64) int64 {
	return max(1, (size+block-1)/block) * block
}

// folders is what so many empty folders count.
func folders(n int) usage { return usage{int64(n) * block, n} }

// usageOf is what one file or folder counts.
func usageOf(info fs.FileInfo) usage {
	if info.Mode().IsRegular() {
		return usage{counted(occupied(info)), 1}
	}
	return usage{block, 1}
}

// Within is the same directory for work that ends with ctx: finding out how much
// a directory holds takes long in a large one, and is given up then. It may be
// combined with Until.
func (d *Dir) Within(ctx context.Context) *Dir {
	return &Dir{all: d.all, name: d.name, until: d.until, ended: ctx.Err}
}

// reserve refuses a write that does not fit. The directory is measured before
// the first write; what is written is added up from then on, and before a
// refusal it is measured again: a child may have removed something.
func (s *space) reserve(d *Dir, more usage) error {
	most := d.all.maxBytes
	if most <= 0 || more.bytes <= 0 && more.items <= 0 && s.measured {
		return nil
	}
	fits := func() error {
		switch {
		case more.items > 0 && s.used.items+more.items > maxItems:
			return fmt.Errorf("%w: it holds %d of at most %d files and folders, and %d more do not fit: write into files that there are", ErrQuota, s.used.items, maxItems, more.items)
		case more.bytes > 0 && s.used.bytes+more.bytes > most:
			return fmt.Errorf("%w: it holds %d of at most %d bytes, and %d more do not fit (each file and folder counts in blocks of %d): make other files shorter first",
				ErrQuota, s.used.bytes, most, more.bytes, block)
		}
		return nil
	}
	if s.measured && fits() == nil {
		return nil
	}
	if err := s.measure(d.ended); err != nil {
		return err
	}
	return fits()
}

// measure finds out what the directory holds.
func (s *space) measure(ended func() error) error {
	m := measuring{ended: ended}
	if err := m.folder(s.root, 1); err != nil {
		return err
	}
	s.used, s.measured = m.found, true
	return nil
}

// measuring is one look at all that a directory holds. Each folder is opened from
// the one above it, so that the time is that of its items and not of their paths.
type measuring struct {
	found usage
	ended func() error
}

func (m *measuring) folder(dir *os.Root, depth int) (err error) {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			if err := m.item(dir, name, depth); err != nil {
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

func (m *measuring) item(dir *os.Root, name string, depth int) error {
	if m.ended != nil && m.ended() != nil {
		return m.ended()
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return passedOver(err)
	}
	m.found.add(usageOf(info))
	if m.found.items > maxMeasured {
		return fmt.Errorf("%w: it holds more than %d files and folders", ErrQuota, maxMeasured)
	}
	if !info.IsDir() || depth >= maxMeasuredDepth {
		return nil
	}
	below, err := dir.OpenRoot(name)
	if err != nil {
		return passedOver(err)
	}
	return errors.Join(m.folder(below, depth+1), below.Close())
}

// passedOver keeps what is gone meanwhile, or not ours to look at, from being an error.
func passedOver(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) {
		return nil
	}
	return err
}
