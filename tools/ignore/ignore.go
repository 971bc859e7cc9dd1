// Package ignore decides which files of a directory a search leaves out: those that .gitignore files name, by git's
// rules, and folders that programs fill, such as node_modules.
//
// A Filter is for one walk from the top down. ignore.go contains it; pattern.go parses and matches the lines of a
// .gitignore file, and usual.go lists the folders that programs fill.
package ignore

import (
	"io"
	"io/fs"
	"path"
	"strings"
)

// gitignore is the name of the files that say what to leave out.
const gitignore = ".gitignore"

// maxHeld limits how many patterns apply at once: those of all folders above an item. A .gitignore file that would
// exceed it is ignored.
const maxHeld = 4000

// isAlwaysSkipped reports whether a folder is left out of every search that doesn't begin in it: git's own folder,
// and the one with results that were too long for the model.
func isAlwaysSkipped(name string) bool { return name == ".git" || name == ".agent" }

// A Filter decides during a walk what to leave out. It is for one walk and one goroutine.
type Filter struct {
	dir     fs.FS
	levels  []level // the folders above the item, the outermost first
	held    int     // how many patterns the levels contain
	off     bool
	skipped bool
}

// A level is one folder with the patterns of its .gitignore file.
type level struct {
	folder   string
	patterns []pattern
	inherits bool // the rules of the folders above apply here too: this is not the top of a repository
}

// New returns the filter for a walk that begins at a folder or a file. If that item would itself be left out,
// nothing is left out below it: whoever names it wants to see it. A .gitignore file that cannot be read counts as
// missing.
func New(dir fs.FS, from string) *Filter {
	f := &Filter{dir: dir}
	if from == "." {
		return f
	}
	parts := strings.Split(from, "/")
	for i := range parts {
		isFolder := i < len(parts)-1
		if !isFolder {
			info, err := fs.Stat(dir, from)
			isFolder = err == nil && info.IsDir()
		}
		if f.Skips(strings.Join(parts[:i+1], "/"), isFolder) {
			return Off()
		}
	}
	f.skipped = false
	return f
}

// Off returns a filter that leaves out only what is always skipped.
func Off() *Filter { return &Filter{off: true} }

// Skipped reports whether the filter has left out anything that a walk without it would show.
func (f *Filter) Skipped() bool { return f.skipped }

// Skips reports whether to leave out an item; leaving out a folder leaves out everything in it. The walk must ask
// about each folder before it asks about anything in it.
func (f *Filter) Skips(name string, isFolder bool) bool {
	if isFolder && isAlwaysSkipped(path.Base(name)) {
		return true
	}
	if f.off {
		return false
	}
	parent := path.Dir(name)
	f.enter(parent)
	ignored, decided := f.decide(name, isFolder)
	if !decided && isFolder {
		ignored = isUsual(f.dir, name)
	}
	f.skipped = f.skipped || ignored
	return ignored
}

// enter sets levels to those of a folder and the folders above it.
func (f *Filter) enter(folder string) {
	for len(f.levels) > 0 && !isWithin(folder, f.levels[len(f.levels)-1].folder) {
		f.held -= len(f.levels[len(f.levels)-1].patterns)
		f.levels = f.levels[:len(f.levels)-1]
	}
	at := ""
	if len(f.levels) > 0 {
		at = f.levels[len(f.levels)-1].folder
	}
	for at != folder {
		at = nextFolder(at, folder)
		f.push(at)
	}
}

// isWithin reports whether folder is the folder in, or is inside it.
func isWithin(folder, in string) bool {
	return in == "." || folder == in || strings.HasPrefix(folder, in+"/")
}

// nextFolder returns the folder one step below at on the way to folder. If at is "", that is the top.
func nextFolder(at, folder string) string {
	switch at {
	case "":
		return "."
	case ".":
		first, _, _ := strings.Cut(folder, "/")
		return first
	}
	next, _, _ := strings.Cut(folder[len(at)+1:], "/")
	return at + "/" + next
}

// push adds a level for a folder.
func (f *Filter) push(folder string) {
	now := level{folder: folder, inherits: true}
	if folder != "." {
		_, err := fs.Stat(f.dir, folder+"/.git")
		now.inherits = err != nil
	}
	now.patterns = parse(f.read(path.Join(folder, gitignore)))
	if f.held+len(now.patterns) > maxHeld {
		now.patterns = nil
	}
	f.held += len(now.patterns)
	f.levels = append(f.levels, now)
}

// read returns the content of a .gitignore file; nil if there is none, or it cannot be read.
func (f *Filter) read(name string) []byte {
	file, err := f.dir.Open(name)
	if err != nil {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFile))
	_ = file.Close() // it was only read
	if err != nil {
		return nil
	}
	return content
}

// decide returns what the last pattern that matches an item says; patterns in deeper folders count as later.
// decided is false if no pattern matches.
func (f *Filter) decide(name string, isFolder bool) (ignored, decided bool) {
	for i := len(f.levels) - 1; i >= 0; i-- {
		at := f.levels[i]
		below := name
		if at.folder != "." {
			below = name[len(at.folder)+1:]
		}
		for j := len(at.patterns) - 1; j >= 0; j-- {
			if at.patterns[j].matches(below, isFolder) {
				return !at.patterns[j].negated, true
			}
		}
		if !at.inherits {
			break
		}
	}
	return false, false
}
