package code_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/code"
	"parley/tools/toolstest"
)

// manyFiles makes a workspace with 5,000 files of four languages.
func manyFiles(b *testing.B) func() *toolstest.Caller {
	b.Helper()
	all, err := workspace.New(workspace.Config{Root: b.TempDir()})
	must(b, err)
	b.Cleanup(func() { must(b, all.Close()) })
	d, err := all.Open("main:telegram:42")
	must(b, err)
	old := time.Now().Add(-time.Hour)
	for i := range 5000 {
		var text strings.Builder
		kind := []string{"go", "py", "ts", "java"}[i%4]
		if kind == "go" {
			text.WriteString("package p\n\n")
		}
		for j := range 20 {
			name := fmt.Sprintf("handle%dStep%d", i, j)
			text.WriteString(map[string]string{
				"go":   "// It is one.\nfunc " + name + "(a, b int) int {\n\tif a > b {\n\t\treturn a\n\t}\n\treturn b\n}\n\n",
				"py":   "def " + name + "(a, b):\n    \"\"\"It is one.\"\"\"\n    return a if a > b else b\n\n",
				"ts":   "export function " + name + "(a: number, b: number): number {\n  return a > b ? a : b;\n}\n\n",
				"java": "class C" + name + " {\n  int " + name + "(int a, int b) {\n    return a > b ? a : b;\n  }\n}\n\n",
			}[kind])
		}
		name := fmt.Sprintf("d%d/e%d/f%d.%s", i%10, i%50, i, kind)
		writeFile(b, d.Path(), name, text.String())
		must(b, os.Chtimes(filepath.Join(d.Path(), name), old, old)) // what is new is read again
	}
	return func() *toolstest.Caller {
		return toolstest.New(code.New(func(context.Context, tools.Call) (*workspace.Dir, error) { return d, nil }, &code.Indexes{})...)
	}
}

func BenchmarkFirstSearch(b *testing.B) {
	made := manyFiles(b)
	for b.Loop() {
		made().Want(b, "code_search", args("query", "handle4000Step7", "kind", "symbol"), "")
	}
}

func BenchmarkNextSearch(b *testing.B) {
	made := manyFiles(b)
	for _, kind := range []string{"symbol", "text"} {
		b.Run(kind, func(b *testing.B) {
			c := made()
			given := args("query", "handle4000Step7", "kind", kind)
			c.Want(b, "code_search", given, "")
			for b.Loop() {
				c.Want(b, "code_search", given, "")
			}
		})
	}
}
