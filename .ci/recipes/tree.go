package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A tree consists of the files of a checkout, which it never changes, and the new contents of those that recipes
// change.
type tree struct {
	root    string
	changed map[string]string // content by path
}

func newTree(root string) *tree { return &tree{root, map[string]string{}} }

// apply makes the changes of a recipe.
func (t *tree) apply(r recipe) error {
	for _, p := range r.places {
		if _, err := os.Stat(filepath.Join(t.root, p.path)); strings.HasSuffix(p.path, "/") && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %s is there already", r.title, p.path)
		}
		for _, c := range p.changes {
			if err := t.change(c); err != nil {
				return fmt.Errorf("%s: %s: %w", r.title, c.file, err)
			}
		}
	}
	return nil
}

func (t *tree) change(c change) error {
	text, err := t.read(c.file)
	switch {
	case c.hunks == nil && err == nil:
		return errors.New("it is there already: say by a diff what becomes of it")
	case c.hunks == nil:
		t.changed[c.file] = c.whole
		return nil
	case err != nil:
		return err
	}
	lines := strings.Split(text, "\n")
	for _, h := range c.hunks {
		at := find(lines, h.before)
		if len(h.before) == 0 || len(at) != 1 {
			return fmt.Errorf("these lines stand in it %d times, and have to once:\n%s", len(at), strings.Join(h.before, "\n"))
		}
		lines = slices.Replace(lines, at[0], at[0]+len(h.before), h.after...)
	}
	t.changed[c.file] = strings.Join(lines, "\n")
	return nil
}

// find returns the indexes at which the lines some occur in lines.
func find(lines, some []string) (at []int) {
	for i := range len(lines) - len(some) + 1 {
		if slices.Equal(lines[i:i+len(some)], some) {
			at = append(at, i)
		}
	}
	return at
}

func (t *tree) read(name string) (string, error) {
	if text, ok := t.changed[name]; ok {
		return text, nil
	}
	raw, err := os.ReadFile(filepath.Join(t.root, name))
	return string(raw), err
}

// write copies the tree, with its changes, to an empty folder, without .git and the folders of what was built.
func (t *tree) write(dir string) error {
	err := filepath.WalkDir(t.root, func(from string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(t.root, from)
		if err != nil {
			return err
		}
		if slices.Contains([]string{".git", "bin", "dist"}, name) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil // a worktree's .git is a file
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(dir, name), 0o750)
		}
		raw, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), raw, info.Mode().Perm())
	})
	if err != nil {
		return err
	}
	for name, text := range t.changed {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
