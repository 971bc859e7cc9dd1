package shellline

import (
	"path"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// An invocation is one command with its assignments and redirections.
type invocation struct {
	words   []word
	assigns []string
	redirs  []*syntax.Redirect
	piped   bool // it reads the output of another command
}

// program returns the name of the program that is run, in lower case and without its directory.
func (u invocation) program() string { return strings.ToLower(path.Base(u.words[0].text)) }
