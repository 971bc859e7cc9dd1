// Sizes prints what each library costs: how many bytes of the program are its code and data, and how much processor
// time its packages take to build. The most expensive libraries come first.
//
// "go run ./.ci/sizes" builds the program without a cache, which takes some minutes. It needs Linux.
package main

import (
	"cmp"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A cost is the total cost of a module's packages.
type cost struct {
	bytes int64
	build time.Duration
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "sizes")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	modules, err := modulesOf(ctx, "./cmd/parley")
	if err != nil {
		return err
	}
	program, actions := filepath.Join(dir, "parley"), filepath.Join(dir, "actions.json")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-debug-actiongraph", actions, "-o", program, "./cmd/parley")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOCACHE="+filepath.Join(dir, "cache"))
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the program: %w", err)
	}
	costs := map[string]*cost{}
	of := func(pkg string) *cost {
		m, ok := modules[pkg]
		if !ok {
			m = "the rest"
		}
		if costs[m] == nil {
			costs[m] = &cost{}
		}
		return costs[m]
	}
	if err := addBuilds(actions, of); err != nil {
		return err
	}
	if err := addBytes(program, modules, of); err != nil {
		return err
	}
	for _, m := range slices.SortedFunc(maps.Keys(costs), func(a, b string) int { return cmp.Compare(costs[b].bytes, costs[a].bytes) }) {
		fmt.Printf("%-50s %7.2f MB %7.1f s\n", m, float64(costs[m].bytes)/1e6, costs[m].build.Seconds())
	}
	return nil
}

// modulesOf returns the module of each package of a program. For the standard library it is "Go".
func modulesOf(ctx context.Context, program string) (map[string]string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-f", "{{.ImportPath}} {{if .Standard}}Go{{else}}{{.Module.Path}}{{end}}", program)
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	modules := map[string]string{"main": "parley", "runtime.main": "Go"}
	for line := range strings.Lines(string(out)) {
		pkg, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		modules[pkg] = module
	}
	return modules, nil
}

// addBuilds adds how much processor time each package took, as the go command has recorded it.
func addBuilds(actions string, of func(pkg string) *cost) error {
	text, err := os.ReadFile(actions)
	if err != nil {
		return err
	}
	var all []struct {
		Mode, Package   string
		CmdUser, CmdSys time.Duration
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("read %s: %w", actions, err)
	}
	for _, a := range all {
		if a.Mode == "build" {
			of(a.Package).build += a.CmdUser + a.CmdSys
		}
	}
	return nil
}

// addBytes adds the sizes of each package's functions and variables. The sum is less than the program's size, because
// the program also contains tables for the runtime.
func addBytes(program string, modules map[string]string, of func(pkg string) *cost) (err error) {
	file, err := elf.Open(program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	symbols, err := file.Symbols()
	if err != nil {
		return fmt.Errorf("read the symbols: %w", err)
	}
	for _, s := range symbols {
		if int(s.Section) < len(file.Sections) && file.Sections[s.Section].Type != elf.SHT_NOBITS { // the others only take memory
			of(packageOf(s.Name, modules)).bytes += int64(s.Size)
		}
	}
	return nil
}

// packageOf returns the package that a symbol belongs to. For a generic type or a type of another package, that is
// the package whose name comes first.
func packageOf(symbol string, modules map[string]string) string {
	for _, prefix := range []string{"type:", "go:itab.", "go:", ".eq.", ".hash."} {
		symbol = strings.TrimPrefix(symbol, prefix)
	}
	symbol = strings.ReplaceAll(strings.TrimLeft(symbol, "*("), "%2e", ".")
	slash := strings.LastIndexByte(strings.SplitN(symbol, "[", 2)[0], '/')
	if dot := strings.IndexByte(symbol[slash+1:], '.'); dot >= 0 {
		symbol = symbol[:slash+1+dot]
	}
	for pkg := symbol; pkg != ""; {
		if _, ok := modules[pkg]; ok {
			return pkg
		}
		i := max(strings.LastIndexByte(pkg, '.'), 0)
		pkg = pkg[:i]
	}
	return symbol
}
