// The program recipes follows the recipes in docs/recipes.md on a copy of the checkout that it runs in, and
// checks and tests the result: `go run ./.ci/recipes`.
//
// It knows only what the page says. Below a heading, each numbered step begins with a path as code: of a file,
// or of a new folder, with a slash at the end. The fenced blocks below a step say what to do there. A block of
// diff changes the file; it has to show enough lines that they fit in one place only, and @@ separates two
// places. Any other block is the content of a new file; in a folder, the file's name follows the language at the
// fence. A block of sh contains the commands that test what was added.
//
// Each recipe has to fit the checkout as it is, and all of them have to fit together. page.go reads the page, and
// tree.go changes the copy.
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

// page is the file with the recipes.
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

// importRules is the test file that says what each package may import. It is run by itself.
const importRules = "cmd/parley/imports_test.go"

// parleyChecks returns the arguments of the go commands that check packages like "make lint" does, except for the linters.
func parleyChecks(packages []string) [][]string {
	return [][]string{append([]string{"vet"}, packages...), {"test", importRules}, append([]string{"run", "./.ci/arrows"}, packages...)}
}

// rehearse follows the recipes on a copy of the checkout in root. Its error says what the checks and the recipes' own
// tests have found wrong with the result.
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

// tests returns the arguments of the go commands that run the recipes' tests, one for each package.
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

// follow returns the checkout with the changes of all recipes. It returns an error if one of them doesn't fit the
// checkout, alone or together with the others.
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

// formatted returns the packages of changed files, as arguments for the go command, and an error for each file
// that gofmt would change.
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
