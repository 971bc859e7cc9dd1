package tools

import "strings"

// TouchBelow returns what a call touches if it shows files below a path of the workspace.
func TouchBelow(path string) Touch {
	return Touch{Subject: Paths{path}, Reads: AnyFiles{}, Writes: NoFiles{}, Outward: NothingOutward{}}
}

// OrDot returns path, or "." for the workspace itself if path is empty.
func OrDot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// RelativeTo returns a name relative to from, the directory in which a search began. It returns "" for from itself,
// and every name unchanged if from is ".".
func RelativeTo(from, name string) string {
	if from == "." {
		return name
	}
	return strings.TrimPrefix(strings.TrimPrefix(name, from), "/")
}
