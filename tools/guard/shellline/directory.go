package shellline

import (
	"path"
	"slices"
	"strings"
)

// A directory tracks the current directory as the line changes it.
type directory struct {
	path string // "" is the directory in which the line began
}

// enter changes to the directory p, which may be relative.
func (d *directory) enter(p string) { d.path = d.resolve(p) }

// resolve returns the absolute form of the path p, relative to the current directory; "" if that
// cannot be told.
func (d *directory) resolve(p string) string {
	switch {
	case strings.Contains(p, Hole):
		return ""
	case strings.HasPrefix(p, "/"):
		return path.Clean(p)
	case d.path != "":
		return path.Join(d.path, p)
	}
	return ""
}

// coversRoot reports whether a path is the root, or a pattern for everything in it.
func (d *directory) coversRoot(w word) bool {
	p := d.resolve(w.path)
	if p == "/" {
		return true
	}
	if p == "" {
		return false
	}
	parts := strings.Split(strings.TrimPrefix(p, "/"), "/")
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.ContainsAny(part, "*?[") })
}
