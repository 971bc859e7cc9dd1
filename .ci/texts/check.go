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
	// textsFile is the file that contains a package's texts for people.
	textsFile = "texts.go"
	// maxScattered is how many sentences a package may have without a textsFile.
	maxScattered = 3
)

// scattered returns the packages whose texts are where they are used, because each describes a metric or a setting
// that is declared there.
func scattered() []string { return []string{"cmd/parley/config", "agent/metrics"} }

// check prints the sentences that are outside their package's textsFile, and the scattered packages that have none
// left outside. It reports whether it has printed anything. The help of a command's flags stays at the flags.
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
		if len(inPackage[p]) <= maxScattered {
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
