// The program texts prints what people read, so that one reader can go through all of it: `go run ./.ci/texts`
// for every package, or with folders as arguments for some. It leaves out texts for the log, for programmers and for
// models, as far as the code shows for whom a text is. With -check it prints the sentences that are outside their
// package's texts.go, and fails if there are any; phrases and errors may stay where they are used.
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

// program returns the folders of the program that have texts for people. What tools say is for models, but people
// read what tools/guard says about a call that needs their approval.
func program() []string { return []string{"agent", "channels", "cmd", "sessions", "tools/guard"} }

// printAll prints the texts in folders. Like check, it returns a bool, which is always false.
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

// A located is a text for people, and where it is.
type located struct {
	file  string
	line  int
	words string
	kind  kind
}

// textsIn returns the texts in a folder and in the folders below it.
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
		for _, t := range textsOf(parsed, hasErrorsForPeople(name)) {
			if t.kind == phrase && !hasPhrases(name) {
				continue
			}
			all = append(all, located{name, files.Position(t.at).Line, t.words, t.kind})
		}
		return nil
	})
}

// isRead reports whether a file may have texts for people.
func isRead(name string) bool {
	folder, base := path.Split(name)
	return strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go") && !strings.HasSuffix(path.Clean(folder), "test") &&
		base != modelsFile && !slices.Contains(forModels(), path.Clean(folder))
}

// modelsFile is the file that contains a package's texts for models.
const modelsFile = "texts_for_models.go"

// forModels returns the packages whose texts are all for models.
func forModels() []string {
	return []string{"agent/calls", "agent/inputs", "agent/prompt", "agent/subagents", "agent/task", "agent/transcript", "channels/heartbeat"}
}

// hasErrorsForPeople reports whether people read the errors that a file makes: those of the command line, of the
// configuration and of some channels, and why a call needs approval. Other errors are for the log.
func hasErrorsForPeople(name string) bool {
	return slices.ContainsFunc([]string{"cmd/parley/", "channels/console/", "channels/discord/commands.go", "tools/guard/"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// hasPhrases reports whether a file may have phrases for people. In other files, what looks like a phrase is something
// else: a pattern for what servers and platforms say, a list of columns or words, or what a tool tells a model.
func hasPhrases(name string) bool {
	return !slices.ContainsFunc([]string{
		"agent/openai/dialect.go", "agent/openai/fault.go", "agent/openai/overflow.go", "agent/openai/providers.go", "channels/telegram/refusals.go", "channels/sqlbook/",
		"sessions/bill/", "sessions/sqlstore/", "sessions/search/", "sessions/workspace/", "sessions/subagents/", "cmd/parley/completion.go",
	}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// A text is a text for people in a file.
type text struct {
	at    token.Pos
	words string
	kind  kind
}

// A kind of text says where it may stand.
type kind int

const (
	sentence kind = iota // belongs in its package's textsFile
	help                 // the help of a flag
	phrase               // an error, or a part of a sentence or a line: may be anywhere
)

// notForPeople returns the functions and fields whose texts are not for people, but for the log, programmers or models.
func notForPeople() []string {
	return []string{
		"Debug", "Info", "Warn", "Error", "Log", "LogAttrs", "panic", "Panic", "MustCompile", "Exec", "Query", "Get", "Contains", "Prompt",
	}
}

// phrases returns the functions and fields whose texts are phrases, even if they look like sentences: those of a chat's
// menu, and of a problem with the configuration.
func phrases() []string { return []string{"Description", "Wrong", "Remedy"} }

// textsOf returns the texts for people in a file, with its errors if errorsToo is true.
func textsOf(file *ast.File, errorsToo bool) []text {
	v := visitor{errorsToo: errorsToo}
	ast.Inspect(file, func(n ast.Node) bool { return v.visit(n, sentence) })
	return v.all
}

// A visitor collects the texts of a file.
type visitor struct {
	errorsToo bool
	all       []text
}

// visit collects the text of a node, if it has one, and reports whether to continue with the parts of the node. If of
// is phrase, sentences count as phrases, too.
func (v *visitor) visit(n ast.Node, of kind) bool {
	parts := func(n ast.Node) bool {
		ast.Inspect(n, func(part ast.Node) bool { return part == n || v.visit(part, phrase) })
		return false
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		if isError(n.Fun) {
			return v.errorsToo && parts(n)
		}
		if slices.Contains(phrases(), nameOf(n.Fun)) {
			return parts(n)
		}
		return !slices.Contains(notForPeople(), nameOf(n.Fun))
	case *ast.KeyValueExpr:
		if slices.Contains(phrases(), nameOf(n.Key)) {
			return parts(n)
		}
		return !slices.Contains(notForPeople(), nameOf(n.Key))
	case *ast.Field:
		if words := helpOf(n); words != "" {
			v.all = append(v.all, text{n.Tag.Pos(), words, help})
		}
		return n.Tag == nil
	case *ast.ImportSpec:
		return false
	case *ast.BasicLit:
		words, err := strconv.Unquote(n.Value)
		switch {
		case err != nil || n.Kind != token.STRING:
		case of == sentence && isSentence(words):
			v.all = append(v.all, text{n.Pos(), words, sentence})
		case isPhrase(words):
			v.all = append(v.all, text{n.Pos(), words, phrase})
		}
	}
	return true
}

// helpOf returns the help of a command's flag or argument, which is in the field's tag; "" if there is none.
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

// isError reports whether a function makes an error: errors.New or fmt.Errorf.
func isError(f ast.Expr) bool {
	s, ok := f.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := s.X.(*ast.Ident)
	return ok && (from.Name == "errors" && s.Sel.Name == "New" || s.Sel.Name == "Errorf")
}

// isSentence reports whether words are a sentence for people: they have at least three words, and begin with a capital
// letter or end like a sentence. What looks like SQL, a regular expression, a setting or a time format is none.
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

// notSentences returns marks that only SQL, regular expressions and time formats contain.
func notSentences() []string { return []string{"= ?", "< ?", "> ?", "(?", "15:04"} }

// notPhrases returns marks that only SQL, JSON and templates contain.
func notPhrases() []string {
	return append(notSentences(), "SELECT ", "WHERE ", "FROM ", "JOIN ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "ORDER BY", "LIMIT ",
		"AND ", "AS ", " IN (", "TEXT", "NULL", " LIKE ", " < ", " > ", "{{", `{"`, "${COMP_")
}

// isPhrase reports whether words may be a part of what people read: at least three words, one of them in lowercase
// letters only.
func isPhrase(words string) bool {
	isWord := func(w string) bool {
		return strings.IndexFunc(w, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
	}
	fields := strings.Fields(words)
	return len(fields) >= 3 && slices.ContainsFunc(fields, isWord) &&
		!slices.ContainsFunc(notPhrases(), func(mark string) bool { return strings.Contains(words, mark) })
}
