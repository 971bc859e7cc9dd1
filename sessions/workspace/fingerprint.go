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
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxHashedBytes is how much of a file's content goes into a fingerprint. For a longer file, the
// fingerprint also includes the time of its last modification.
const maxHashedBytes = 64 << 20

// maxLookups limits how many names are looked up for one fingerprint.
const maxLookups = 100_000

// Fingerprint returns a hash of the directory itself and of everything in it that the words of a command
// may name: the content of a file, the kind of anything else. It looks up each word in the directory, in
// each folder that is in folders or that leads to one of these, and again relative to that folder,
// because a command may first change to any of these. A name that does not exist is not part of the hash,
// so the hash changes once it exists. It refuses words and folders that take more than maxLookups look-ups. The hash
// is the same on every machine that mounts the directory.
func (d *Dir) Fingerprint(ctx context.Context, words, folders []string) (string, error) {
	return d.fingerprint(ctx, words, folders, sharedIdentity)
}

// LocalFingerprint returns the hash in the form of older releases, whose Fingerprint was not the same on
// every machine.
func (d *Dir) LocalFingerprint(ctx context.Context, words, folders []string) (string, error) {
	return d.fingerprint(ctx, words, folders, localIdentity)
}

// fingerprint computes either of them; identity distinguishes a folder from others.
func (d *Dir) fingerprint(ctx context.Context, words, folders []string, identity func(fs.FileInfo) string) (string, error) {
	h := sha256.New()
	// Compare what the name leads to now with what is open: somebody may have put another directory in
	// its place.
	at, err := os.Stat(d.Path())
	if err != nil {
		return "", sanitized(".", err)
	}
	err = d.withOpenDir(".", func(s *openDir, _ string) error {
		open, err := s.root.Stat(".")
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %s\n", identity(at), identity(open))
		names, err := s.existingNames(ctx, d.namesToLookUp(slices.Concat(words, folders)), d.namesToLookUp(folders), open)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := s.hashPath(ctx, h, name, identity); err != nil {
				return err
			}
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// namesToLookUp returns the names that words may refer to in any folder: the words as they are written,
// the same without the part that leads out of a folder that does not exist yet, and the folders that lead
// to them.
func (d *Dir) namesToLookUp(words []string) []string {
	var names []string
	for _, word := range words {
		name := word
		if filepath.IsAbs(name) {
			inside, ok := d.relativeName(filepath.Clean(name))
			if !ok {
				continue
			}
			name = inside
		}
		if name == "" || len(name) > maxPath || strings.ContainsRune(name, 0) {
			continue
		}
		names = append(names, name)
		rest := name
		for strings.HasPrefix(rest, "../") {
			rest = strings.TrimLeft(rest[len(".."):], "/")
		}
		if rest != name && rest != "" {
			names = append(names, rest)
		}
		for i, c := range rest {
			if c == '/' && i > 0 {
				names = append(names, rest[:i])
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// existingNames looks up the words in the directory, and in each folder that it finds and whose name is in places. It
// returns the names that exist.
func (s *openDir) existingNames(ctx context.Context, words, places []string, root fs.FileInfo) ([]string, error) {
	var found []string
	isPlace := make(map[string]bool, len(places))
	for _, place := range places {
		isPlace[place] = true
	}
	folders, visited := []string{"."}, map[string]bool{localIdentity(root): true}
	for lookups := 0; len(folders) > 0; folders = folders[1:] {
		if lookups += len(words); lookups > maxLookups {
			return nil, refusalf("the words could name more than %d files of the workspace", maxLookups)
		}
		for _, word := range words {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			for _, name := range joinedNames(folders[0], word) {
				if _, err := s.root.Lstat(name); err != nil {
					continue // no tool can read it either
				}
				found = append(found, name)
				if !isPlace[word] {
					continue
				}
				info, err := s.root.Stat(name)
				if err == nil && info.IsDir() && !visited[localIdentity(info)] {
					visited[localIdentity(info)] = true
					folders = append(folders, name)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// joinedNames returns the cleaned path of a word in a folder. If the word goes up, it also returns the
// path that the system reaches through links.
func joinedNames(folder, word string) []string {
	clean, raw := path.Join(folder, word), folder+"/"+word
	if !strings.Contains(raw, "..") {
		return []string{clean}
	}
	return []string{clean, raw}
}

// hashPath adds to a hash what a name refers to.
func (s *openDir) hashPath(ctx context.Context, h hash.Hash, name string, identity func(fs.FileInfo) string) (err error) {
	info, err := s.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return nil //nolint:nilerr // no tool can read it either
	}
	fmt.Fprintf(h, "%q %s", name, info.Mode().Type())
	if info.Mode()&fs.ModeSymlink != 0 {
		to, err := s.root.Readlink(name)
		fmt.Fprintf(h, " %q %t", to, err == nil)
		if info, err = s.root.Stat(name); err != nil {
			_, _ = io.WriteString(h, "\n")
			return nil //nolint:nilerr // it leads out of the directory, or to nothing
		}
	}
	if !info.Mode().IsRegular() {
		fmt.Fprintf(h, " %s\n", identity(info))
		return nil
	}
	f, info, err := s.open(name)
	if err != nil {
		fmt.Fprintf(h, " %s %d %d\n", identity(info), sizeOf(info), modifiedNanos(info))
		return nil //nolint:nilerr // no tool opens it
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() > maxHashedBytes {
		fmt.Fprintf(h, " %d", modifiedNanos(info))
	}
	fmt.Fprintf(h, " %d ", info.Size())
	content := sha256.New()
	if _, err := io.Copy(content, io.LimitReader(cancellableReader{ctx, f}, maxHashedBytes)); err != nil {
		return err
	}
	fmt.Fprintf(h, "%x\n", content.Sum(nil))
	return nil
}

// A cancellableReader reads a file until its ctx is done, because hashing a long file takes a while.
type cancellableReader struct {
	ctx  context.Context
	file io.Reader
}

func (r cancellableReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, r.ctx.Err()
	}
	return r.file.Read(p)
}

// sizeOf returns a file's size; -1 if info is nil.
func sizeOf(info fs.FileInfo) int64 {
	if info == nil {
		return -1
	}
	return info.Size()
}

// modifiedNanos returns a file's time of modification in nanoseconds; -1 if info is nil.
func modifiedNanos(info fs.FileInfo) int64 {
	if info == nil {
		return -1
	}
	return info.ModTime().UnixNano()
}
