// The program arrows checks how the files of each package use one another, and fails if a package
// or a type exceeds a limit. `go run ./.ci/arrows` checks all packages, or only those given as
// arguments; with -v it also prints each arrow that points up.
//
// An arrow leads from a file to another file of the same package that declares something the
// first one names: a function, a method, a type, a variable or a constant. The program looks for
// the order of the files in which the fewest arrows point up, that is, from a file to one above
// it. A package in which most arrows point down can be read from top to bottom; where many point
// up, a reader has to know all of it to understand any file. Test files don't count. Of packages
// with test suites and fakes, whose names end in "test", only the lines count. A file for one
// operating system counts as a part of the file with the same name for all systems.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// These are the limits of a package and of a type. Above nine tenths of a limit, the program prints a warning.
const (
	maxArrows  = 10
	maxLines   = 5000
	maxMethods = 40
)

func main() {
	verbose := flag.Bool("v", false, "name each arrow that points up")
	flag.Parse()
	over, err := run(os.Stdout, *verbose, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "arrows:", err)
		os.Exit(2)
	}
	if over {
		os.Exit(1)
	}
}

// run prints what it finds, and reports whether something is over its limit.
func run(w io.Writer, verbose bool, patterns []string) (over bool, err error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	listed, err := list(patterns)
	if err != nil {
		return false, err
	}
	for _, path := range slices.Sorted(maps.Keys(listed)) {
		p := listed[path]
		if p.DepOnly || p.Standard {
			continue
		}
		r, err := read(p, listed)
		if err != nil {
			return false, err
		}
		over = r.print(w, p.ImportPath, verbose) || over
	}
	return over, nil
}

// A listed is a package as "go list" describes it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly, Standard       bool
	ImportMap               map[string]string
}

// list asks the go command for the packages that match patterns and for all that they import. The go
// command compiles them, because read needs their export data.
func list(patterns []string) (map[string]listed, error) {
	out, err := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,DepOnly,Standard,ImportMap"}, patterns...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("go list: %s", exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	all := map[string]listed{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all[p.ImportPath] = p
	}
}

// A scan is what read has found out about one package.
type scan struct {
	lines   int
	files   []string
	arrows  map[[2]string]string // by the using file and the used file: one of the names that are used
	methods map[string]int       // how many methods each type has
}

// system matches the end of the name of a file for one operating system.
var system = regexp.MustCompile(`_(linux|darwin|unix|windows|other|notlinux)\.go$`)

// read finds out which files of a package use names that other files of it declare.
func read(p listed, all map[string]listed) (scan, error) {
	r := scan{arrows: map[[2]string]string{}, methods: map[string]int{}}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return r, err
		}
		files = append(files, file)
		r.lines += set.File(file.Pos()).LineCount()
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[cmp.Or(p.ImportMap[path], path)].Export)
	})}
	pkg, err := config.Check(p.ImportPath, set, files, &info)
	if err != nil {
		return r, err
	}
	place := func(pos token.Pos) string {
		return system.ReplaceAllString(filepath.Base(set.Position(pos).Filename), ".go")
	}
	for _, file := range files {
		if name := place(file.Pos()); !slices.Contains(r.files, name) {
			r.files = append(r.files, name)
		}
	}
	slices.Sort(r.files)
	for ident, object := range info.Uses {
		if object.Pkg() != pkg || !declared(object, pkg) {
			continue
		}
		if from, to := place(ident.Pos()), place(object.Pos()); from != to {
			if name, ok := r.arrows[[2]string{from, to}]; !ok || ident.Name < name {
				r.arrows[[2]string{from, to}] = ident.Name
			}
		}
	}
	for _, object := range info.Defs {
		if f, ok := object.(*types.Func); ok {
			if recv := f.Signature().Recv(); recv != nil && !types.IsInterface(recv.Type()) {
				r.methods[strings.TrimPrefix(types.TypeString(recv.Type(), types.RelativeTo(pkg)), "*")]++
			}
		}
	}
	return r, nil
}

// declared reports whether an object is a method of a type, or declared outside functions, so that
// other files can name it.
func declared(object types.Object, pkg *types.Package) bool {
	if f, ok := object.(*types.Func); ok && f.Signature().Recv() != nil {
		return !types.IsInterface(f.Signature().Recv().Type())
	}
	return object.Parent() == pkg.Scope()
}

// print prints what is close to a limit or exceeds it, and reports whether something exceeds it. If
// verbose is true, it prints all counts and each arrow that points up.
func (r scan) print(w io.Writer, path string, verbose bool) (over bool) {
	up := r.up()
	if verbose {
		for _, arrow := range up {
			fmt.Fprintf(w, "%s: %s uses %s of %s\n", path, arrow[0], r.arrows[arrow], arrow[1])
		}
	}
	check := func(what string, n, most int) {
		switch {
		case n > most:
			over = true
			fmt.Fprintf(w, "%s has %s: %d, and may have %d; move one noun into a package of its own\n", path, what, n, most)
		case n*10 > most*9:
			fmt.Fprintf(w, "%s is nearly full: %s: %d of %d\n", path, what, n, most)
		case verbose:
			fmt.Fprintf(w, "%s: %s: %d\n", path, what, n)
		}
	}
	check("lines", r.lines, maxLines)
	if strings.HasSuffix(path, "test") {
		return over // a suite or a fake is read with the tests, one file at a time
	}
	check(fmt.Sprintf("arrows up of %d between its %d files", len(r.arrows), len(r.files)), len(up), maxArrows)
	for _, name := range slices.Sorted(maps.Keys(r.methods)) {
		if n := r.methods[name]; n*10 > maxMethods*9 {
			check("methods of "+name, n, maxMethods)
		}
	}
	return over
}
