package shellline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// IsPlain reports whether a line reads no files except those that it names: each of its words is
// literal, and each of its programs reads only what it is told to. A line for which this is not
// certain is not plain.
func IsPlain(line string) bool {
	if len(line) > maxBytes || strings.Contains(line, Hole) || nestingBound(line) > maxNesting {
		return false
	}
	for _, dialect := range dialectsOf(line) {
		file, err := syntax.NewParser(syntax.Variant(dialect)).Parse(strings.NewReader(line), "")
		if err != nil || slices.ContainsFunc(file.Stmts, func(s *syntax.Stmt) bool { return !isPlainStmt(s) }) {
			return false
		}
	}
	return true
}

// IsPlainCommand is like IsPlain, for a program and its arguments that no shell interprets.
func IsPlainCommand(program string, args []string) bool {
	return isPlainProgram(append([]string{program}, args...))
}

func isPlainStmt(s *syntax.Stmt) bool {
	if s.Background || s.Coprocess || slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return !isPlainRedirect(r) }) {
		return false
	}
	switch cmd := s.Cmd.(type) {
	case nil:
		return true
	case *syntax.BinaryCmd:
		return isPlainStmt(cmd.X) && isPlainStmt(cmd.Y)
	case *syntax.CallExpr:
		if len(cmd.Assigns) > 0 {
			return false
		}
		var words []string
		for _, w := range cmd.Args {
			text, ok := plainWord(w)
			if !ok {
				return false
			}
			words = append(words, text)
		}
		return isPlainProgram(words)
	}
	return false
}

func isPlainRedirect(r *syntax.Redirect) bool {
	if r.Hdoc != nil {
		return !slices.ContainsFunc(r.Hdoc.Parts, func(p syntax.WordPart) bool { _, literal := p.(*syntax.Lit); return !literal })
	}
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.DplOut, syntax.WordHdoc:
		_, ok := plainWord(r.Word)
		return ok
	}
	return false
}

// plainWord returns a word in the form that the program gets, and whether that form is certain
// before the line runs.
func plainWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "\\*?[]{}~") && p.Value != "[" && p.Value != "]" {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if p.Dollar || !ok || strings.Contains(lit.Value, "\\") {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// anyArguments marks a program that reads no files, whatever its arguments are.
const anyArguments = "*"

// plainPrograms returns the programs that read no files except those that they are given. Each
// comes with the letters of the options that keep this true: none of these walks through folders,
// takes names from a file, or runs a program.
func plainPrograms() map[string]string {
	return map[string]string{
		":": anyArguments, "[": anyArguments, "basename": anyArguments, "dirname": anyArguments, "echo": anyArguments, "expr": anyArguments, "false": anyArguments,
		"printf": anyArguments, "pwd": anyArguments, "seq": anyArguments, "sleep": anyArguments, "test": anyArguments, "true": anyArguments,
		"base64": "diw", "cat": "AbeEnstTuv", "cd": "", "chmod": "cfv", "cmp": "bls", "cp": "finpuvT", "cut": "bcdfns", "date": "uRI",
		"egrep": "EFGPivwxcnlLoqshHAaBCemy", "fgrep": "EFGPivwxcnlLoqshHAaBCemy", "grep": "EFGPivwxcnlLoqshHAaBCemy",
		"head": "cnqvz", "ln": "sfnvT", "ls": "1aAbBcCdfFgGhiklmnNopqQrsStuUvwxXZ", "md5sum": "btz", "mkdir": "pvm", "mv": "finuvT", "nl": "abdfhilnpsvw",
		"od": "Aajtnovxcd", "readlink": "fenz", "realpath": "esmz", "rev": "", "rm": "dfiIv", "rmdir": "pv",
		"sha1sum": "btz", "sha256sum": "btz", "sha512sum": "btz", "sort": "bdfghiMnrVcCmsuzkt", "stat": "Lftc", "tac": "brs", "tail": "cnqvz",
		"tee": "ai", "touch": "acm", "tr": "cCdst", "uniq": "cdDuifsw", "wc": "clmwL",
	}
}

// isPlainProgram reports whether a command reads only what it names. A program given by path
// doesn't qualify, because the path could lead to any program.
func isPlainProgram(words []string) bool {
	if len(words) == 0 {
		return false
	}
	letters, known := plainPrograms()[words[0]]
	if !known {
		return false
	}
	if letters == anyArguments {
		return true
	}
	return !slices.ContainsFunc(words[1:], func(word string) bool {
		options, isOption := strings.CutPrefix(word, "-")
		return isOption && strings.Trim(options, letters+"0123456789") != ""
	})
}
