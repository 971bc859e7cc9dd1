// The program texts prints what people read, so that one reader can go through all of it: `go run ./.ci/texts`
// for every package, or with folders for some. Texts for the log, for programmers and for models are left out, as
// far as the code shows for whom they are.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

func main() {
	folders := os.Args[1:]
	if len(folders) == 0 {
		folders = []string{"agent", "channels", "cmd", "sessions", "tools"}
	}
	for _, folder := range folders {
		if err := filepath.WalkDir(folder, printFile); err != nil {
			fmt.Fprintln(os.Stderr, "texts:", err)
			os.Exit(1)
		}
	}
}

// printFile prints the texts of a file, if it is one of the program's.
func printFile(path string, d fs.DirEntry, err error) error {
	if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Base(filepath.Dir(path)), "test") {
		return err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, nil, 0)
	if err != nil {
		return err
	}
	for _, t := range textsOf(parsed) {
		fmt.Printf("%s:%d: %s\n", path, files.Position(t.at).Line, strings.ReplaceAll(t.words, "\n", "\n    "))
	}
	return nil
}

// A text is what people read.
type text struct {
	at    token.Pos
	words string
}

// notForPeople are the functions and fields whose texts others read: the log, programmers, and models.
func notForPeople() []string {
	return []string{
		"Debug", "Info", "Warn", "Error", "Log", "LogAttrs", "New", "Errorf", "panic", "Panic", "MustCompile", "Exec", "Query", "Get", "Contains",
		"Description", "Prompt", "Wrong", "Remedy",
	}
}

// textsOf returns the sentences for people in a file.
func textsOf(file *ast.File) (all []text) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			return !slices.Contains(notForPeople(), nameOf(n.Fun)) || nameOf(n.Fun) == "New" && !isErrors(n.Fun)
		case *ast.KeyValueExpr:
			return !slices.Contains(notForPeople(), nameOf(n.Key))
		case *ast.Field:
			if help := helpOf(n); help != "" {
				all = append(all, text{n.Tag.Pos(), help})
			}
			return n.Tag == nil
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if words, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && isSentence(words) {
				all = append(all, text{n.Pos(), words})
			}
		}
		return true
	})
	return all
}

// helpOf returns what a command's help says of a field; "" if that is nothing.
func helpOf(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	return reflect.StructTag(tag).Get("help")
}

// nameOf returns the last name of an expression, such as Info of log.Info.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// isErrors reports whether an expression is a name of the package errors.
func isErrors(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := s.X.(*ast.Ident)
	return ok && from.Name == "errors"
}

// isSentence reports whether words are for people: they begin as sentences do, or have a blank and an end of
// one. What looks like SQL or a format of times is not.
func isSentence(words string) bool {
	fields := strings.Fields(words)
	if len(fields) < 3 || strings.Contains(words, "= ?") || strings.Contains(words, "< ?") || strings.Contains(words, "> ?") {
		return false
	}
	first := strings.TrimLeft(fields[0], "_*(\"“`-")
	if first == "" || strings.ToUpper(fields[0]) == fields[0] && len(first) > 1 && !strings.ContainsAny(first, "%[") {
		return false // SQL, or a name
	}
	begins := first[0] >= 'A' && first[0] <= 'Z'
	return begins || strings.ContainsAny(words, ".?!:") && strings.Contains(words, " ") && strings.ContainsAny(words[len(words)-1:], ".?!")
}
