// The program texts prints what people read, so that one reader can go through all of it: `go run ./.ci/texts`
// for every package, or with folders for some. Texts for the log, for programmers and for models are left out, as
// far as the code shows for whom they are. With -check it prints the texts that stand outside of their package's
// texts.go, and fails if there are any.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

func main() {
	checks := flag.Bool("check", false, "print the texts that stand in the wrong place, and fail if there are any")
	flag.Parse()
	folders := flag.Args()
	if len(folders) == 0 {
		folders = program()
	}
	run := printAll
	if *checks {
		run = func(w io.Writer, tree fs.FS, folders []string) (bool, error) {
			return check(w, tree, folders, scattered())
		}
	}
	failed, err := run(os.Stdout, os.DirFS("."), folders)
	if err != nil {
		fmt.Fprintln(os.Stderr, "texts:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// program are the folders of the program. What tools say is for models.
func program() []string { return []string{"agent", "channels", "cmd", "sessions"} }

// printAll prints the texts of folders. It never reports a failure.
func printAll(w io.Writer, tree fs.FS, folders []string) (bool, error) {
	for _, folder := range folders {
		all, err := textsIn(tree, folder)
		if err != nil {
			return false, err
		}
		for _, t := range all {
			fmt.Fprintf(w, "%s:%d: %s\n", t.file, t.line, strings.ReplaceAll(t.words, "\n", "\n    "))
		}
	}
	return false, nil
}

// A located text is what people read, and where it stands.
type located struct {
	file   string
	line   int
	words  string
	isHelp bool // what the help says of a flag
}

// textsIn returns the texts in a folder and those below it.
func textsIn(tree fs.FS, folder string) (all []located, err error) {
	return all, fs.WalkDir(tree, path.Clean(folder), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !isRead(name) {
			return err
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, name, source, 0)
		if err != nil {
			return err
		}
		for _, t := range textsOf(parsed) {
			all = append(all, located{name, files.Position(t.at).Line, t.words, t.isHelp})
		}
		return nil
	})
}

// isRead reports whether a file of the program may have texts for people.
func isRead(name string) bool {
	folder, base := path.Split(name)
	return strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go") && !strings.HasSuffix(path.Clean(folder), "test") &&
		base != modelsFile && !slices.Contains(forModels(), path.Clean(folder))
}

// modelsFile is the file of a package that has what models read.
const modelsFile = "texts_for_models.go"

// forModels are the packages all of whose texts models read.
func forModels() []string {
	return []string{"agent/calls", "agent/inputs", "agent/prompt", "agent/subagents", "agent/task", "agent/transcript", "channels/heartbeat"}
}

// A text is what people read.
type text struct {
	at     token.Pos
	words  string
	isHelp bool
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
				all = append(all, text{n.Tag.Pos(), help, true})
			}
			return n.Tag == nil
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if words, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && isSentence(words) {
				all = append(all, text{n.Pos(), words, false})
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
// one. What looks like SQL, a regular expression, a setting or a format of times is not.
func isSentence(words string) bool {
	fields := strings.Fields(words)
	if len(fields) < 3 || slices.ContainsFunc(notSentences(), func(mark string) bool { return strings.Contains(words, mark) }) {
		return false
	}
	first := strings.TrimLeft(fields[0], "_*(\"“`-")
	if first == "" || strings.Contains(first, "=") || strings.ToUpper(fields[0]) == fields[0] && len(first) > 1 && !strings.ContainsAny(first, "%[") {
		return false // SQL, a setting, or a name
	}
	begins := first[0] >= 'A' && first[0] <= 'Z'
	return begins || strings.ContainsAny(words, ".?!:") && strings.Contains(words, " ") && strings.ContainsAny(words[len(words)-1:], ".?!")
}

// notSentences are what only SQL, regular expressions and formats of times have.
func notSentences() []string { return []string{"= ?", "< ?", "> ?", "(?", "15:04"} }
