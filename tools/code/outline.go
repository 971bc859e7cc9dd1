package code

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/tools"
	"parley/tools/code/symbols"
)

// Limits of a map.
const (
	maxMap       = 4 << 10 // bytes
	defaultDepth = 2
	maxMapDepth  = 6
	maxEntries   = 8 // files in which programs begin
)

// A folder is a line of a map.
type folder struct {
	name      string
	depth     int
	files     int
	languages map[string]int   // files by language
	symbols   []symbols.Symbol // of the files in the folder itself
	members   map[string]int   // how many symbols each container has
}

// outline returns the map of a listing. If that is too long, it shows fewer symbols and then fewer levels.
func outline(dir Dir, list listing, depth int) string {
	if depth = min(depth, maxMapDepth); depth == 0 {
		depth = defaultDepth
	}
	head := readmeTitle(dir, list)
	if starts := entryPoints(list); len(starts) > 0 {
		head += "Starts in: " + strings.Join(starts, ", ") + "\n"
	}
	if list.cutReason != "" {
		head += "Not complete: " + list.cutReason + "\n"
	}
	for ; depth > 0; depth-- {
		folders := foldersOf(list, depth)
		for _, most := range []int{8, 4, 2, 0} {
			if text := head + renderFolders(folders, most); len(text) <= maxMap {
				return text
			}
		}
	}
	text := head + renderFolders(foldersOf(list, 1), 0)
	if len(text) > maxMap {
		text = text[:strings.LastIndexByte(text[:maxMap-len("…\n")], '\n')+1] + "…\n"
	}
	return text
}

// foldersOf returns the folders of a listing down to a depth. Deeper files count for their ancestor at that depth.
func foldersOf(list listing, depth int) []*folder {
	all := map[string]*folder{}
	add := func(name string, level int) *folder {
		if all[name] == nil {
			all[name] = &folder{name: name, depth: level, languages: map[string]int{}, members: map[string]int{}}
		}
		return all[name]
	}
	add(".", 0)
	for _, f := range list.files {
		parts := strings.Split(tools.RelativeTo(list.from, f.name), "/")
		for level := 0; level <= min(depth, len(parts)-1); level++ {
			at := add(path.Join(append([]string{"."}, parts[:level]...)...), level)
			at.files++
			if f.language != "" {
				at.languages[f.language]++
			}
			if level == min(depth, len(parts)-1) && !isTest(f.name) {
				at.symbols = append(at.symbols, f.symbols...)
			}
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *folder) int {
		// A NUL sorts before any character of a name, so a folder's subfolders come right after it.
		return strings.Compare(strings.ReplaceAll(a.name, "/", "\x00"), strings.ReplaceAll(b.name, "/", "\x00"))
	})
}

// renderFolders writes one line for each folder, with at most most symbols in each.
func renderFolders(folders []*folder, most int) string {
	var b strings.Builder
	for _, f := range folders {
		name := path.Base(f.name) + "/"
		if f.name == "." {
			name = "."
		}
		fmt.Fprintf(&b, "%s%s %s", strings.Repeat("  ", f.depth), name, f.describeCounts())
		if names := f.mainSymbols(most); len(names) > 0 {
			b.WriteString(": " + strings.Join(names, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// describeCounts says how many files a folder contains of each of its three most frequent languages.
func (f *folder) describeCounts() string {
	names := slices.SortedFunc(maps.Keys(f.languages), func(a, b string) int {
		return cmp.Or(f.languages[b]-f.languages[a], strings.Compare(a, b))
	})
	files := "files"
	if f.files == 1 {
		files = "file"
	}
	text := fmt.Sprintf("%d %s", f.files, files)
	var parts []string
	for _, name := range names[:min(len(names), 3)] {
		parts = append(parts, fmt.Sprintf("%d %s", f.languages[name], name))
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

// mainSymbols returns the names of a folder's main symbols: types with many methods first, then functions.
func (f *folder) mainSymbols(most int) []string {
	if most == 0 {
		return nil
	}
	clear(f.members)
	for _, s := range f.symbols {
		f.members[s.Container]++
	}
	weight := func(s symbols.Symbol) int {
		switch s.Kind {
		case symbols.Func:
			return 1
		case symbols.Class, symbols.Struct, symbols.Interface, symbols.Type, symbols.Enum:
			return 2 + f.members[s.Name]
		}
		return 0
	}
	list := slices.DeleteFunc(slices.Clone(f.symbols), func(s symbols.Symbol) bool {
		return weight(s) == 0 || strings.HasPrefix(s.Name, "_") || s.Kind == symbols.Func && s.Container != ""
	})
	slices.SortStableFunc(list, func(a, b symbols.Symbol) int {
		return cmp.Or(cmp.Compare(unexportedRank(a.Name), unexportedRank(b.Name)), cmp.Compare(weight(b), weight(a)))
	})
	var names []string
	for _, s := range list {
		if len(names) < most && !slices.Contains(names, s.Name) && len(s.Name) <= 60 {
			names = append(names, s.Name)
		}
	}
	return names
}

// unexportedRank returns 1 for a name that begins with a lowercase letter: in many languages that means it isn't exported.
func unexportedRank(name string) int {
	if r, _ := utf8.DecodeRuneInString(name); unicode.IsLower(r) {
		return 1
	}
	return 0
}

// readmeTitle returns the name of a project's README, its first line that says something, and a line end; "" if
// there is none.
func readmeTitle(dir Dir, list listing) string {
	for _, f := range list.files {
		name := cmp.Or(tools.RelativeTo(list.from, f.name), path.Base(f.name)) // from may be the file itself
		if strings.Contains(name, "/") || !strings.HasPrefix(strings.ToLower(name), "readme") || f.size > maxSearched {
			continue
		}
		content, _ := readText(dir, f.name, maxSearched)
		for line := range strings.Lines(content) {
			line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#=*"))
			if line == "" || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "[!") || strings.HasPrefix(line, "![") {
				continue
			}
			return name + ": " + strings.ToValidUTF8(tools.Clip(line, 200), "\uFFFD") + "\n"
		}
	}
	return ""
}

// entryPoints returns the files in which programs begin. If there are more than maxEntries, the last entry says how
// many more.
func entryPoints(list listing) []string {
	var found []string
	for _, f := range list.files {
		if isTest(f.name) || !isEntry(f) {
			continue
		}
		found = append(found, f.name)
	}
	slices.SortStableFunc(found, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	if more := len(found) - maxEntries; more > 0 {
		found = append(found[:maxEntries], fmt.Sprintf("%d more", more))
	}
	return found
}

// isEntry reports whether a program begins in a file.
func isEntry(f listedFile) bool {
	switch base := path.Base(f.name); {
	case slices.Contains([]string{"__main__.py", "manage.py", "wsgi.py", "asgi.py"}, base):
		return true
	case slices.Contains([]string{"main.py", "app.py", "index.js", "index.ts", "server.js", "server.ts", "main.js", "main.ts", "main.tsx", "index.php", "main.rb"}, base):
		return strings.Count(f.name, "/") <= 2
	}
	switch f.language {
	case "go", "rust", "c", "c++":
		return slices.ContainsFunc(f.symbols, func(s symbols.Symbol) bool {
			return s.Name == "main" && s.Kind == symbols.Func && s.Container == ""
		})
	case "java":
		return slices.ContainsFunc(f.symbols, func(s symbols.Symbol) bool { return s.Name == "main" && s.Kind == symbols.Method })
	}
	return false
}
