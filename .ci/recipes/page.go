package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxPlaces is how many places a recipe may have.
const maxPlaces = 5

// A recipe says how to add one thing.
type recipe struct {
	title  string
	places []place
	tests  []test // tests of what the recipe adds
}

// A test says which tests to run: those in the package in dir whose names run matches; "" means all.
type test struct{ dir, run string }

// A place is the file or folder that one step of a recipe is about.
type place struct {
	path    string // path of a file, or of a folder that the recipe makes, with a slash at the end
	changes []change
}

// A change is what one block of code does to a file: it creates the file, or changes some of its lines.
type change struct {
	file  string
	whole string // the content, for a new file
	hunks []hunk // the changes, for an existing file
}

// A hunk contains some lines of a file, and the lines that replace them.
type hunk struct{ before, after []string }

// A block is a fenced block of the page.
type block struct {
	language, name string // the words after the opening fence
	lines          []string
}

// readPage reads the recipes of a page. It returns an error if one of them cannot be followed.
func readPage(file string) ([]recipe, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all := parse(strings.Split(string(raw), "\n"))
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no recipes", file)
	}
	var wrong []error
	for _, r := range all {
		if err := r.check(); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %s: %w", file, r.title, err))
		}
	}
	return all, errors.Join(wrong...)
}

// parse reads the recipes in the lines of a page: a heading begins a recipe, and a number begins a step.
func parse(lines []string) (all []recipe) {
	step := regexp.MustCompile("^[0-9]+\\. `([^`]+)`")
	fence := regexp.MustCompile("^( *)```(\\S+) ?(\\S*)$")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if title, ok := strings.CutPrefix(line, "## "); ok {
			all = append(all, recipe{title: title})
		}
		if len(all) == 0 {
			continue
		}
		now := &all[len(all)-1]
		if m := step.FindStringSubmatch(line); m != nil {
			now.places = append(now.places, place{path: m[1]})
		}
		if m := fence.FindStringSubmatch(line); m != nil {
			b := block{language: m[2], name: m[3]}
			for i++; i < len(lines) && lines[i] != m[1]+"```"; i++ {
				b.lines = append(b.lines, strings.TrimPrefix(lines[i], m[1]))
			}
			now.add(b)
		}
	}
	return all
}

// add adds a block to the recipe: to its newest place or, if it is a block of sh, to its tests.
func (r *recipe) add(b block) {
	if b.language == "sh" {
		for _, line := range b.lines {
			m := testLine().FindStringSubmatch(line)
			if m == nil {
				m = []string{"", "", ""} // check refuses such a line
			}
			r.tests = append(r.tests, test{m[1], m[2]})
		}
		return
	}
	if len(r.places) == 0 {
		r.places = append(r.places, place{})
	}
	at := &r.places[len(r.places)-1]
	c := change{file: path.Join(at.path, b.name)}
	if b.language == "diff" {
		c.hunks = hunks(b.lines)
	} else {
		c.whole = strings.Join(b.lines, "\n") + "\n"
	}
	at.changes = append(at.changes, c)
}

// testLine returns the pattern of a line that names a test.
func testLine() *regexp.Regexp { return regexp.MustCompile(`^go test (\./\S+)(?: -run '([^']+)')?$`) }

// hunks reads the lines of a diff, in which @@ separates hunks.
func hunks(lines []string) []hunk {
	all := make([]hunk, 1)
	for _, line := range lines {
		now := &all[len(all)-1]
		switch text := line[min(1, len(line)):]; {
		case line == "@@":
			all = append(all, hunk{})
		case strings.HasPrefix(line, "+"):
			now.after = append(now.after, text)
		case strings.HasPrefix(line, "-"):
			now.before = append(now.before, text)
		default:
			now.before, now.after = append(now.before, text), append(now.after, text)
		}
	}
	return all
}

// check returns an error that says why nobody could follow the recipe; nil if somebody could.
func (r *recipe) check() error {
	var seen []string
	for _, p := range r.places {
		inFolder := strings.HasSuffix(p.path, "/")
		switch {
		case p.path == "" || path.IsAbs(p.path) || strings.HasPrefix(path.Clean(p.path), ".."):
			return errors.New("a step begins with the path of its file or folder, as code")
		case slices.Contains(seen, p.path):
			return fmt.Errorf("two steps are about %s", p.path)
		case len(p.changes) == 0:
			return fmt.Errorf("%s: there is no code below the step", p.path)
		}
		seen = append(seen, p.path)
		for _, c := range p.changes {
			if named := c.file != path.Clean(p.path); named != inFolder {
				return fmt.Errorf("%s: the code in a folder has a file's name behind its fence, other code has none", p.path)
			}
			if inFolder && c.hunks != nil {
				return fmt.Errorf("%s: a folder is new, and its files are written as a whole", p.path)
			}
		}
	}
	if n := len(r.places); n == 0 || n > maxPlaces {
		return fmt.Errorf("it has %d places, and may have 1 to %d: make the code need fewer", n, maxPlaces)
	}
	if len(r.tests) == 0 {
		return errors.New("no block of sh says which tests see whether it works")
	}
	if slices.Contains(r.tests, test{}) {
		return errors.New("a line of sh is go test ./PACKAGE, or that and -run 'REGEXP'")
	}
	return nil
}
