// Package folder reads skills from folders: each folder contains a SKILL.md, and perhaps a
// skill.toml that lists programs.
//
// The files: folder.go finds the folders; front.go reads the description in a SKILL.md, and
// manifest.go the programs in a skill.toml; hash.go tells whether a skill has changed; disk.go opens
// a folder on this machine.
package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// File is the file that makes a folder a skill.
const File = "SKILL.md"

// MaxFile limits a SKILL.md, in bytes.
const MaxFile = 256 << 10

// MaxSkills limits how many skills the operator's folders may contain.
const MaxSkills = 100

// A Skill is a skill as described in its folder.
type Skill struct {
	Name        string // the name of the folder
	Description string // one line
	Path        string // the folder's path on this machine; "" in a workspace
	Files       fs.FS  // the folder
	Version     string // such as 2.0.0; "" if its skill.toml doesn't say it
	Programs    []Program
}

// Body returns the current text of SKILL.md below its description.
func (s Skill) Body() (string, error) {
	raw, err := read(s.Files, File, MaxFile)
	if err != nil {
		return "", err
	}
	_, body, err := parse(raw)
	return body, err
}

// A Problem says why a folder cannot be used as a skill, and what to do about it.
type Problem struct {
	File   string // the file or folder that has the problem
	Wrong  string
	Remedy string
	// IsMinor says that the problem is not serious: perhaps the folder is not meant to be a skill at
	// all.
	IsMinor bool
	// Skill is the name of the folder of the skill that has the problem, and is left out unless the
	// problem is minor; "" if the problem doesn't belong to a single skill.
	Skill string
}

// Error returns the file, the problem and the remedy as one text.
func (p Problem) Error() string { return p.File + ": " + p.Wrong + ": " + p.Remedy }

// Find reads the skills in these folders, each in a folder of its own, and returns them sorted by
// name. A link to a folder counts as a folder. It leaves out skills that it cannot read, and those
// with the same name as one found before, and those beyond MaxSkills, and returns a problem for each.
// Many skills are other people's work, so one that cannot be used has no effect on the others.
func Find(dirs ...string) (found []Skill, problems []Problem) {
	where := map[string]string{}
	for _, dir := range dirs {
		names, err := subfolders(dir)
		if err != nil {
			problems = append(problems, Problem{File: dir, Wrong: "it can't be read: " + Reason(err), Remedy: "make the folder, let this user read it, or name another in [skills] dirs"})
			continue
		}
		for _, name := range names {
			place := filepath.Join(dir, name)
			skill, wrong := readOne(diskFolder(place), name, place)
			if wrong == nil {
				var notes []Problem
				if notes, wrong = skill.readManifest(); wrong != nil {
					wrong.File = filepath.Join(place, Manifest)
				}
				for _, note := range notes {
					note.File, note.Skill = filepath.Join(place, Manifest), name
					problems = append(problems, note)
				}
			}
			if first, twice := where[skill.Name]; wrong == nil && twice {
				wrong = &Problem{File: place, Wrong: "another skill has the same name: " + first, Remedy: "rename or remove one of them"}
			}
			if wrong != nil {
				wrong.Skill = name
				problems = append(problems, *wrong)
				continue
			}
			skill.Path, where[skill.Name] = place, place
			found = append(found, skill)
		}
	}
	slices.SortFunc(found, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	if len(found) > MaxSkills {
		for _, s := range found[MaxSkills:] {
			problems = append(problems, Problem{File: s.Path, Wrong: fmt.Sprintf("there are %d skills, and Parley reads at most %d", len(found), MaxSkills), Remedy: "remove some", Skill: s.Name})
		}
		found = found[:MaxSkills]
	}
	return found, problems
}

// subfolders returns the names of the folders in dir, except hidden ones.
func subfolders(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err == nil && info.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Limits of how much of a session's workspace is searched, which is done in every turn.
const (
	maxSessionSkills  = 50
	maxSessionFolders = 500
)

// ReadIn reads the skills in the folder dir of a session's workspace. It skips folders that are not
// skills. If there are too many, the last problem says so.
func ReadIn(files fs.FS, dir string) (found []Skill, problems []Problem) {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil, nil // there are no skills
	}
	for i, e := range entries {
		if i == maxSessionFolders {
			problems = append(problems, Problem{File: dir, Wrong: fmt.Sprintf("Parley looks at no more than %d entries", maxSessionFolders), Remedy: "remove some"})
			break
		}
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		place := path.Join(dir, e.Name())
		below, err := fs.Sub(files, place)
		if err != nil {
			continue
		}
		skill, wrong := readOne(below, e.Name(), place)
		switch {
		case wrong != nil && wrong.IsMinor:
		case wrong != nil:
			problems = append(problems, *wrong)
		default:
			found = append(found, skill)
			if hasFile(below, Manifest) {
				problems = append(problems, Problem{File: path.Join(place, Manifest), Wrong: "a skill in a workspace can't bring tools", Remedy: "have the operator put it with the other skills"})
			}
		}
		if len(found)+len(problems) >= maxSessionSkills { // a skill may count twice
			problems = append(problems, Problem{File: dir, Wrong: fmt.Sprintf("Parley reads no more than %d skills", maxSessionSkills), Remedy: "remove some"})
			break
		}
	}
	return found, problems
}

// Read reads the skill in one folder of a session's workspace, and what its skill.toml says, as if it
// were the operator's.
func Read(files fs.FS, place string) (Skill, *Problem) {
	below, err := fs.Sub(files, place)
	if err != nil {
		return Skill{}, &Problem{File: place, Wrong: Reason(err), Remedy: "name a folder"}
	}
	skill, wrong := readOne(below, path.Base(place), place)
	if wrong == nil {
		if _, wrong = skill.readManifest(); wrong != nil {
			wrong.File = path.Join(place, Manifest)
		}
	}
	return skill, wrong
}

// readOne reads the skill in the folder with this name. place tells people in problems where the folder is. The
// problem is minor if nothing suggests that the folder is meant to be a skill.
func readOne(files fs.FS, name, place string) (Skill, *Problem) {
	file := path.Join(place, File)
	raw, err := read(files, File, maxFront)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Skill{}, &Problem{File: place, Wrong: "it has no " + File, Remedy: "write one, or move the folder away", IsMinor: !hasFile(files, strings.ToLower(File), Manifest)}
	case err != nil && !errors.Is(err, errTooLong):
		return Skill{}, &Problem{File: file, Wrong: Reason(err), Remedy: "let this user read it as a file"}
	}
	if info, err := fs.Stat(files, File); err == nil && info.Size() > MaxFile {
		return Skill{}, &Problem{File: file, Wrong: fmt.Sprintf("it has %d bytes, and Parley reads at most %d", info.Size(), MaxFile), Remedy: "move whatever is only needed now and then into files next to it"}
	}
	about, _, err := parse(raw)
	if err != nil {
		return Skill{}, &Problem{File: file, Wrong: err.Error(), Remedy: "begin it with the lines ---, name: " + suggestName(name) + ", description: \"What it is for, and when to use it.\" and ---"}
	}
	if wrong := about.check(name); wrong != nil {
		wrong.File = file
		return Skill{}, wrong
	}
	return Skill{Name: name, Description: about.Description, Files: files}, nil
}

// Walk calls visit for everything below a folder, in order, until visit returns an error. For a folder,
// visit may return fs.SkipDir. Unlike fs.WalkDir, Walk opens no folder as if it were a file, which a
// session's workspace refuses. It skips folders below the first that cannot be read.
func Walk(files fs.FS, visit func(name string, e fs.DirEntry) error) error {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return err
	}
	return walk(files, ".", entries, visit)
}

func walk(files fs.FS, dir string, entries []fs.DirEntry, visit func(name string, e fs.DirEntry) error) error {
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		err := visit(name, e)
		if e.IsDir() && errors.Is(err, fs.SkipDir) {
			continue
		}
		if err == nil && e.IsDir() {
			if below, unreadable := fs.ReadDir(files, name); unreadable == nil {
				err = walk(files, name, below, visit)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasFile reports whether a folder has one of these files.
func hasFile(files fs.FS, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := fs.Stat(files, name)
		return err == nil
	})
}

// errTooLong says that a file is longer than allowed, so that only its beginning was read.
var errTooLong = errors.New("it is too long")

// read reads a file. If the file is longer than most, read returns its beginning with errTooLong.
func read(files fs.FS, name string, most int64) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: %w: it isn't a regular file", name, fs.ErrInvalid)
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if int64(len(raw)) > most {
		return raw[:most], fmt.Errorf("read %s: %w", name, errTooLong)
	}
	return raw, nil
}

// Reason returns why something cannot be read, without its path on this machine.
func Reason(err error) string {
	for _, known := range []error{fs.ErrNotExist, fs.ErrPermission, errTooLong} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return wrong.Err.Error()
	}
	return err.Error()
}
