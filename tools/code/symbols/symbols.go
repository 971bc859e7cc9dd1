// Package symbols finds the functions, types and constants that a file of source code declares.
//
// Go is read by its own parser. Nine more languages are read by patterns: a scanner skips comments and
// strings, and the tokens before a brace or at the beginning of a line tell what is declared. That is right for
// code as people write it, and never fails: in a broken file it finds what it can.
//
// The files: symbols.go lists the languages; symbol.go defines a symbol; lexer.go splits a text into tokens, and
// literals.go reads its strings; braces.go follows the braces of C, C++, Java, JavaScript, TypeScript, Rust and
// PHP, whose declarations are in files of their own; python.go, ruby.go and golang.go read the other languages.
package symbols

import (
	"path"
	"slices"
	"strings"
)

// A language is a language whose symbols this package finds.
type language struct {
	name       string
	extensions string // separated by blanks
	find       func(src string) []Symbol
}

func languages() []language {
	return []language{
		{"go", ".go", findGo},
		{"python", ".py .pyi .pyw", findPython},
		{"javascript", ".js .jsx .mjs .cjs", braces(scriptGrammar{}, scriptSyntax())},
		{"typescript", ".ts .tsx .mts .cts", braces(scriptGrammar{typed: true}, scriptSyntax())},
		{"rust", ".rs", braces(rustGrammar{}, syntax{slashComments: true, nestedComments: true, rustLiterals: true, multilineStrings: true})},
		{"java", ".java", braces(javaGrammar{}, syntax{slashComments: true, tripleQuotes: true})},
		{"c", ".c .h", braces(cGrammar{}, syntax{slashComments: true, directives: true})},
		{"c++", ".cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .ipp .inl", braces(cGrammar{plus: true}, syntax{slashComments: true, directives: true, rawStrings: true})},
		{"ruby", ".rb .rake .gemspec", findRuby},
		{"php", ".php .phtml", braces(phpGrammar{}, syntax{slashComments: true, hashComments: true, multilineStrings: true, phpTags: true})},
	}
}

// Languages returns the names of all languages.
func Languages() []string {
	var names []string
	for _, l := range languages() {
		names = append(names, l.name)
	}
	return names
}

// A Finder finds symbols. Reuse one, because it holds tables.
type Finder struct {
	byExtension map[string]language
}

// NewFinder makes a Finder of all languages.
func NewFinder() *Finder {
	f := &Finder{map[string]language{}}
	for _, l := range languages() {
		for extension := range strings.FieldsSeq(l.extensions) {
			f.byExtension[extension] = l
		}
	}
	return f
}

// Language returns the language of a file, judging by its name; "" if it is unknown.
func (f *Finder) Language(name string) string {
	return f.byExtension[strings.ToLower(path.Ext(name))].name
}

// Find returns the symbols that a file declares, in the order of lines, at most MaxSymbols. It returns none for a
// file that is too long, or in another language.
func (f *Finder) Find(name, src string) []Symbol {
	l, ok := f.byExtension[strings.ToLower(path.Ext(name))]
	if !ok || len(src) > MaxFile {
		return nil
	}
	if l.name == "c" && strings.HasSuffix(name, ".h") && looksLikeCPlusPlus(src) {
		l = f.byExtension[".hpp"]
	}
	found := l.find(src)
	found = slices.DeleteFunc(found, func(s Symbol) bool { return len(s.Name) > maxName || len(s.Container) > maxName })
	found = found[:min(len(found), MaxSymbols)]
	slices.SortStableFunc(found, func(a, b Symbol) int { return a.Line - b.Line })
	copies := map[string]string{}
	for i, s := range found { // the names are substrings, which would keep the whole text in memory
		found[i].Name, found[i].Container = shareText(copies, s.Name), shareText(copies, s.Container)
	}
	return found
}

// looksLikeCPlusPlus reports whether a header file contains C++.
func looksLikeCPlusPlus(src string) bool {
	return strings.Contains(src, "\nclass ") || strings.Contains(src, "\nnamespace ") || strings.Contains(src, "\ntemplate")
}

// shareText returns a copy of a text. Equal texts share one copy.
func shareText(copies map[string]string, text string) string {
	known, ok := copies[text]
	if !ok {
		known = strings.Clone(text)
		copies[known] = known
	}
	return known
}
