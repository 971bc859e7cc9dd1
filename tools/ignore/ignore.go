// Package ignore finds out which files of a directory searches leave out: those that .gitignore files name,
// by git's rules, and folders that programs fill, such as node_modules.
//
// A Filter is for one walk from the top down. ignore.go has it; pattern.go reads and matches the lines of a
// .gitignore file, and usual.go knows the folders.
package ignore

import (
	"io"
	"io/fs"
	"path"
	"strings"
)

// gitignore is the name of the files that say what is left out.
const gitignore = ".gitignore"

// maxHeld bounds how many patterns count at once, those of all folders above an item.
const maxHeld = 4000

// isAlwaysSkipped reports whether a folder is left out whatever is asked for, unless a search begins in it:
// git's own, and the one with results that were too long for the model.
func isAlwaysSkipped(name string) bool { return name == ".git" || name == ".agent" }

// A Filter says during a walk what to leave out. It is for one walk and one goroutine.
type Filter struct {
	dir     fs.FS
	levels  []level // the folders above the item, the outermost first
	held    int     // how many patterns they have
	off     bool
	skipped bool
}

// A level is one folder with the patterns of its .gitignore file.
type level struct {
	folder   string
	patterns []pattern
	outer    bool // the rules of the folders above count here too: it is not the top of a repository
}

// New returns the filter for a walk from a folder, or a file, on. If that is itself left out, nothing is
// left out below it: whoever names it wants to see it. An error reading a .gitignore file is that of no file.
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

// Off returns a filter that leaves out nothing but what is always skipped.
func Off() *Filter { return &Filter{off: true} }

// Skipped reports whether the filter has left out anything that a walk without it would show.
func (f *Filter) Skipped() bool { return f.skipped }

// Skips reports whether to leave out an item, and a folder with all that is in it. The walk must ask about
// each folder before it asks about anything in it.
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

// enter makes levels those of a folder and the folders above it.
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

// isWithin reports whether a folder is another one or lies in it.
func isWithin(folder, in string) bool {
	return in == "." || folder == in || strings.HasPrefix(folder, in+"/")
}

// nextFolder returns the folder one step below at on the way to folder; "" is above the top.
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

// push adds the level of a folder.
func (f *Filter) push(folder string) {
	now := level{folder: folder, outer: true}
	if folder != "." {
		_, err := fs.Stat(f.dir, folder+"/.git")
		now.outer = err != nil
	}
	now.patterns = parse(f.read(path.Join(folder, gitignore)))
	if f.held+len(now.patterns) > maxHeld {
		now.patterns = nil
	}
	f.held += len(now.patterns)
	f.levels = append(f.levels, now)
}

// read returns the content of a .gitignore file; nothing if there is none, or it cannot be read.
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

// decide returns what the last pattern says that matches an item, that of the deepest folder first; decided
// is false if none does.
func (f *Filter) decide(name string, isFolder bool) (ignored, decided bool) {
	for i := len(f.levels) - 1; i >= 0; i-- {
		at := f.levels[i]
		below := name
		if at.folder != "." {
			below = name[len(at.folder)+1:]
		}
		for j := len(at.patterns) - 1; j >= 0; j-- {
			if at.patterns[j].matches(below, isFolder) {
				return !at.patterns[j].again, true
			}
		}
		if !at.outer {
			break
		}
	}
	return false, false
}
