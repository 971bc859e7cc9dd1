// Parley's page builder bundles the web page of channels/web/page: TypeScript and CSS become a few files, without Node.
//
// "go run . [-check] FOLDER" writes FOLDER/dist from FOLDER/src and FOLDER/vendored. With -check it writes
// nothing, and fails if dist differs from what it would write.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// maxDistBytes limits the total size of the files of dist, because every copy of the program contains them.
const maxDistBytes = 500_000

func main() {
	check := flag.Bool("check", false, "compare, and write nothing")
	flag.Parse()
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folder string, check bool) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	built, err := build(folder)
	if err != nil {
		return err
	}
	size := 0
	for _, text := range built {
		size += len(text)
	}
	if size > maxDistBytes {
		return fmt.Errorf("the page has %d bytes: at most %d are allowed", size, maxDistBytes)
	}
	dist := filepath.Join(folder, "dist")
	if check {
		return compare(dist, built)
	}
	return write(dist, built)
}

// build returns the contents of the files of dist, by name.
func build(folder string) (map[string][]byte, error) {
	vendored := func(path string) string { return filepath.Join(folder, "vendored", filepath.FromSlash(path)) }
	result := api.Build(api.BuildOptions{
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: filepath.Join(folder, "src", "main.tsx"), OutputPath: "page"}},
		AbsWorkingDir:       folder,
		Outdir:              filepath.Join(folder, "dist"),
		Bundle:              true,
		Format:              api.FormatESModule,
		Target:              api.ES2022,
		Charset:             api.CharsetUTF8,
		JSX:                 api.JSXAutomatic,
		JSXImportSource:     "preact",
		MinifyWhitespace:    true,
		MinifySyntax:        true,
		MinifyIdentifiers:   true,
		LineLimit:           160, // so that a small change to the page doesn't change one huge line
		TreeShaking:         api.TreeShakingTrue,
		Alias: map[string]string{
			"preact":             vendored("preact/dist/preact.mjs"),
			"preact/hooks":       vendored("preact/hooks/dist/hooks.mjs"),
			"preact/jsx-runtime": vendored("preact/jsx-runtime/dist/jsxRuntime.mjs"),
			"markdown-it":        vendored("markdown-it/dist/markdown-it.mjs"),
			"linkify-it":         vendored("linkify-it/build/index.mjs"),
			"mdurl":              vendored("mdurl/index.mjs"),
			"punycode.js":        vendored("punycode.js/punycode.es6.js"),
			"uc.micro":           vendored("uc.micro/build/index.mjs"),
			"entities":           filepath.Join(folder, "src", "markdown", "entities.ts"),
		},
	})
	if len(result.Errors) > 0 || len(result.Warnings) > 0 {
		said := api.FormatMessages(slices.Concat(result.Errors, result.Warnings), api.FormatMessagesOptions{})
		return nil, errors.New(strings.Join(said, ""))
	}
	built := map[string][]byte{}
	for _, f := range result.OutputFiles {
		built[filepath.Base(f.Path)] = f.Contents
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		text, err := os.ReadFile(filepath.Join(folder, "src", name))
		if err != nil {
			return nil, err
		}
		built[name] = text
	}
	licences, err := licences(filepath.Join(folder, "vendored"))
	built["licenses.txt"] = licences
	return built, err
}

// licences returns the licenses of everything in the folder vendored, joined into one file.
func licences(vendored string) ([]byte, error) {
	var all bytes.Buffer
	all.WriteString("The page of Parley contains these works of others.\n")
	err := filepath.WalkDir(vendored, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(d.Name(), "LICENSE") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "\n== %s\n\n%s", filepath.Base(filepath.Dir(path)), text)
		return nil
	})
	return all.Bytes(), err
}

// write replaces the folder dist with one that contains only these files.
func write(dist string, built map[string][]byte) error {
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for name, text := range built {
		if err := os.WriteFile(filepath.Join(dist, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare returns an error that names the files of dist that differ from what was built.
func compare(dist string, built map[string][]byte) error {
	have, err := os.ReadDir(dist)
	if err != nil {
		return err
	}
	var wrong []string
	for _, e := range have {
		if _, ok := built[e.Name()]; !ok {
			wrong = append(wrong, e.Name())
		}
	}
	for name, text := range built {
		if is, err := os.ReadFile(filepath.Join(dist, name)); err != nil || !bytes.Equal(is, text) {
			wrong = append(wrong, name)
		}
	}
	if wrong == nil {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("%s is not what its sources make: run make page and commit; these differ: %s", dist, strings.Join(wrong, ", "))
}
