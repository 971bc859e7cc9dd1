package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
)

// maxHashed is how many bytes of a skill's files are hashed. Beyond that, only the sizes and modification times of
// files are.
const maxHashed = 16 << 20

// Hash returns a hash of the skill's current files. It changes whenever what the skill's programs do
// may change, unless a file beyond maxHashed keeps its size and its time.
func (s Skill) Hash() (string, error) {
	sum, left := sha256.New(), int64(maxHashed)
	err := Walk(s.Files, func(name string, e fs.DirEntry) error {
		if e.IsDir() {
			return nil
		}
		info, err := fs.Stat(s.Files, name) // of the target of a link
		if err != nil || !info.Mode().IsRegular() {
			fmt.Fprintf(sum, "%q\n", name) // a program can't read it, either
			return nil
		}
		fmt.Fprintf(sum, "%q %d %t\n", name, info.Size(), info.Mode()&0o111 != 0)
		if left -= info.Size(); left < 0 {
			fmt.Fprintln(sum, info.ModTime().UnixNano())
			return nil
		}
		return hashFile(sum, s.Files, name)
	})
	if err != nil {
		return "", fmt.Errorf("read the files of the skill %s: %w", s.Name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// hashFile adds the content of a file to a hash.
func hashFile(sum hash.Hash, files fs.FS, name string) error {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	_, err = io.Copy(sum, f)
	return err
}
