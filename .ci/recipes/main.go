// The program recipes follows the recipes of docs/recipes.md on a copy of the checkout that it is run
// in, and looks whether what they add is fit for it: `go run ./.ci/recipes`.
//
// The page is all that it knows. Below its headings, a numbered step begins with the path of a file, or of a
// new folder with a slash at the end, as code. The fenced blocks below a step say what becomes of it: one of
// diff changes the file, and has to show enough of it to fit in one spot only; @@ stands between two spots. Any
// other is the whole of a new file, which has its name behind the fence in a folder. A block of sh has the
// tests of what was added.
//
// Each recipe has to fit the checkout as it is, and all of them have to fit together. Read page.go first, then
// tree.go.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/format"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"slices"
	"strings"
	"time"
)

// page is the page with the recipes.
const page = "docs/recipes.md"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	recipes, err := readPage(page)
	if err == nil {
		err = rehearse(ctx, os.Stdout, ".", recipes, parleyChecks)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "recipes:", err)
		os.Exit(1)
	}
}

// importRules is the file that knows what each package may import, which is run by itself.
const importRules = "cmd/parley/imports_test.go"

// parleyChecks returns the arguments of the go command with which it looks at packages as lint does, but for the linters.
func parleyChecks(packages []string) [][]string {
	return [][]string{append([]string{"vet"}, packages...), {"test", importRules}, append([]string{"run", "./.ci/arrows"}, packages...)}
}

// rehearse follows the recipes on a copy of the checkout in root, and returns what is wrong with the result by
// the checks and by the recipes' own tests.
func rehearse(ctx context.Context, w io.Writer, root string, recipes []recipe, checks func(packages []string) [][]string) (err error) {
	all, err := follow(root, recipes)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "recipes-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := all.write(dir); err != nil {
		return fmt.Errorf("copy the checkout: %w", err)
	}
	for _, r := range recipes {
		fmt.Fprintf(w, "%s: %d places\n", r.title, len(r.places))
	}
	packages, wrong := formatted(all.changed)
	for _, args := range append(checks(packages), tests(recipes)...) {
		began := time.Now()
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, w, w
		if err := cmd.Run(); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", cmd, err))
		}
		fmt.Fprintf(w, "go %s (%.1f s)\n", strings.Join(args, " "), time.Since(began).Seconds())
	}
	return errors.Join(wrong...)
}

// tests returns the arguments of the go command for the recipes' tests, once for each package.
func tests(recipes []recipe) (all [][]string) {
	runs := map[string][]string{}
	for _, r := range recipes {
		for _, t := range r.tests {
			if run := cmp.Or(t.run, "."); !slices.Contains(runs[t.dir], run) {
				runs[t.dir] = append(runs[t.dir], run)
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(runs)) {
		all = append(all, []string{"test", dir, "-run", strings.Join(runs[dir], "|")})
	}
	return all
}

// follow returns the checkout with all recipes followed. Each has to fit the checkout without the others, too.
func follow(root string, recipes []recipe) (*tree, error) {
	var wrong []error
	all := newTree(root)
	for _, r := range recipes {
		if err := newTree(root).apply(r); err != nil {
			wrong = append(wrong, err)
		} else if err := all.apply(r); err != nil {
			wrong = append(wrong, fmt.Errorf("beside the other recipes: %w", err))
		}
	}
	return all, errors.Join(wrong...)
}

// formatted returns the packages of changed files, as the go command takes them, and an error for each file
// that is not as gofmt has it.
func formatted(changed map[string]string) (packages []string, wrong []error) {
	dirs := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if path.Ext(name) != ".go" {
			continue
		}
		if name != importRules {
			dirs["./"+path.Dir(name)] = true
		}
		if plain, err := format.Source([]byte(changed[name])); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
		} else if string(plain) != changed[name] {
			wrong = append(wrong, fmt.Errorf("%s is not as gofmt has it", name))
		}
	}
	return slices.Sorted(maps.Keys(dirs)), wrong
}
