package main

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	// textsFile is the file of a package that has what people read.
	textsFile = "texts.go"
	// fewTexts is how many texts a package may have where they are used.
	fewTexts = 3
)

// scattered are the packages whose texts stand where they are used: what a metric or a setting says of itself
// stands at it.
func scattered() []string { return []string{"cmd/parley/config", "agent/metrics"} }

// check prints the texts that stand outside of their package's textsFile, and the packages that no
// longer belong to the scattered ones, and reports whether there were any. What a command's flags say in
// its help stays at the flags.
func check(w io.Writer, tree fs.FS, folders, scattered []string) (found bool, err error) {
	inPackage := map[string][]located{}
	for _, folder := range folders {
		all, err := textsIn(tree, folder)
		if err != nil {
			return false, err
		}
		for _, t := range all {
			if t.kind == sentence {
				inPackage[path.Dir(t.file)] = append(inPackage[path.Dir(t.file)], t)
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(inPackage)) {
		outside := slices.DeleteFunc(slices.Clone(inPackage[p]), func(t located) bool { return path.Base(t.file) == textsFile })
		if len(inPackage[p]) <= fewTexts {
			outside = nil
		}
		switch listed := slices.Contains(scattered, p); {
		case listed && len(outside) == 0:
			found = true
			fmt.Fprintf(w, "%s has its texts together: take it off the list of .ci/texts/check.go\n", p)
		case !listed:
			for _, t := range outside {
				found = true
				fmt.Fprintf(w, "%s:%d: move this to %s: %s\n", t.file, t.line, textsFile, strings.ReplaceAll(t.words, "\n", "\n    "))
			}
		}
	}
	return found, nil
}
