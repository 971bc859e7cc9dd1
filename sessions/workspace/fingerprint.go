package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
)

// maxSummed is how much of a file's content is in a fingerprint; of a longer file,
// also when it was written.
const maxSummed = 64 << 20

// Fingerprint is a sum of the directory itself, and of what these paths name in it: of
// a file its content, of all else what it is. A path that names nothing is not in it,
// so the sum changes once it does.
func (d *Dir) Fingerprint(paths []string) (string, error) {
	h := sha256.New()
	// What the name leads to now, and what is open: somebody may have put another
	// directory in its place.
	at, err := os.Stat(d.Path())
	if err != nil {
		return "", sanitised(".", err)
	}
	names := []string{}
	for _, path := range paths {
		if name, err := d.Name(path); err == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	err = d.do(".", func(s *openDir, _ string) error {
		open, err := s.root.Stat(".")
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %s\n", identity(at), identity(open))
		for _, name := range names {
			if err := s.sum(h, name); err != nil {
				return err
			}
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// sum adds what a name stands for.
func (s *openDir) sum(h hash.Hash, name string) (err error) {
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return nil //nolint:nilerr // it cannot be read by a tool either
	}
	fmt.Fprintf(h, "%q %s", name, info.Mode().Type())
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := s.root.Readlink(name)
		fmt.Fprintf(h, " %q %t", to, err == nil)
		if info, err = s.root.Stat(name); err != nil {
			_, _ = io.WriteString(h, "\n")
			return nil //nolint:nilerr // it leads out, or nowhere
		}
	}
	if !info.Mode().IsRegular() {
		fmt.Fprintf(h, " %s\n", identity(info))
		return nil
	}
	f, info, err := s.open(name)
	if err != nil {
		fmt.Fprintf(h, " %s %d %d\n", identity(info), size(info), written(info))
		return nil //nolint:nilerr // no tool opens it
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() > maxSummed {
		fmt.Fprintf(h, " %d", written(info))
	}
	fmt.Fprintf(h, " %d ", info.Size())
	content := sha256.New()
	if _, err := io.Copy(content, io.LimitReader(f, maxSummed)); err != nil {
		return err
	}
	fmt.Fprintf(h, "%x\n", content.Sum(nil))
	return nil
}

func size(info fs.FileInfo) int64 {
	if info == nil {
		return -1
	}
	return info.Size()
}

func written(info fs.FileInfo) int64 {
	if info == nil {
		return -1
	}
	return info.ModTime().UnixNano()
}
