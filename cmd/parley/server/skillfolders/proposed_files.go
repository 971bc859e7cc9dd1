package skillfolders

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"parley/cmd/parley/api/exchange"
	"parley/tools"
	"parley/tools/plainjson"
	"parley/tools/skills/folder"
)

// These are the limits of a proposed skill, so that an owner can review all of it.
const (
	maxProposedFiles = 50
	maxProposedBytes = 512 << 10
)

// A ProposedFile is a file of a proposed skill.
type ProposedFile struct {
	Path       string `json:"path"` // its path below the skill's folder
	Executable bool   `json:"executable"`
	Text       string `json:"text"`
}

// readProposed reads the files of a proposed skill, which have to be texts that an owner can review. place is the
// skill's folder, as the model knows it. Its errors about the files are for the model.
func readProposed(files fs.FS, place string) (all []ProposedFile, err error) {
	left := int64(maxProposedBytes)
	err = folder.Walk(files, func(name string, e fs.DirEntry) error {
		if e.IsDir() {
			return nil
		}
		info, err := fs.Stat(files, name)
		if err != nil {
			return err
		}
		if left -= info.Size(); left < 0 || len(all) == maxProposedFiles {
			return tools.Errorf(tools.InvalidArgs, "%s has more than %d files or %d KB, which is too much to review: remove what it doesn't need", place, maxProposedFiles, maxProposedBytes>>10)
		}
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if !utf8.Valid(raw) || strings.ContainsRune(string(raw), 0) {
			return tools.Errorf(tools.InvalidArgs, "%s isn't text, so nobody could look at it: remove it", name)
		}
		all = append(all, ProposedFile{Path: name, Executable: info.Mode()&0o111 != 0, Text: string(raw)})
		return nil
	})
	return all, err
}

// hashOf returns a hash of files as they were read, so that an owner accepts exactly what was shown.
func hashOf(files []ProposedFile) (string, error) {
	raw, err := plainjson.Marshal(files)
	if err != nil {
		return "", fmt.Errorf("hash a proposed skill: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// install writes a skill into the operator's folder dir, whole or not at all, and returns its folder there. Once it
// has returned, a power failure doesn't undo it. Installing the same skill again does nothing.
func install(dir string, s ShownProposal) (string, error) {
	place := filepath.Join(dir, s.Name)
	if _, err := os.Lstat(place); err == nil {
		if s.isIn(place) { // a process died after it had installed the skill
			return place, nil
		}
		return "", exchange.Conflict("taken", place+" already exists: move it away, or have the agent propose "+s.Name+"-v2")
	}
	if err := s.write(dir, place); err != nil {
		return "", exchange.Conflict("unwritable", fmt.Sprintf("the skill can't be written to %s: %v", dir, err))
	}
	return place, nil
}

// isIn reports whether a folder has the files of the skill, and no others.
func (s ShownProposal) isIn(place string) bool {
	files, err := readProposed(os.DirFS(place), place)
	if err != nil {
		return false
	}
	sum, err := hashOf(files)
	return err == nil && sum == s.Hash
}

// write writes the skill to a hidden folder in dir, which doesn't count as a skill, and then renames the folder. It
// replaces what a process that died has left there.
func (s ShownProposal) write(dir, place string) error {
	made := filepath.Join(dir, ".proposed-"+s.Name)
	if err := os.RemoveAll(made); err != nil {
		return err
	}
	for _, f := range s.Files {
		if err := f.write(made); err != nil {
			return err
		}
	}
	if err := makeReadable(made); err != nil {
		return err
	}
	if err := os.Rename(made, place); err != nil {
		return err
	}
	return plainjson.SyncDir(dir)
}

// makeReadable lets everybody list a folder and those below it, whatever the umask is: commands run as another user.
func makeReadable(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
}

// write writes the file below a folder, readable for the user that commands run as.
func (f ProposedFile) write(dir string) error {
	file, mode := filepath.Join(dir, filepath.FromSlash(f.Path)), fs.FileMode(0o644)
	if f.Executable {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := plainjson.ReplaceFileBytes(file, []byte(f.Text)); err != nil {
		return err
	}
	return os.Chmod(file, mode)
}
