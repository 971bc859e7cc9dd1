package shellline

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A word is one word of a command as the program would get it.
type word struct {
	// text has a Hole for what only running would tell, names of files that a
	// pattern stands for included.
	text string
	// path is the same with such patterns as they are written, to see where they lead.
	path string
}

func literal(s string) word {
	s = strings.ReplaceAll(s, Hole, "")
	return word{s, s}
}

// known says that there is nothing in it that only running would tell.
func (w word) known() bool { return !strings.Contains(w.text, Hole) }

// reader makes a word of its parts.
type reader struct {
	text, path strings.Builder
}

// read is the word that a program would get.
func read(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	var r reader
	r.parts(w.Parts, false)
	return word{collapse(r.text.String()), r.path.String()}
}

func (r *reader) parts(parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			r.lit(p.Value, quoted)
		case *syntax.SglQuoted:
			r.quoted(p)
		case *syntax.DblQuoted:
			r.parts(p.Parts, true)
		default: // a variable, what another command prints, a pattern
			r.hole()
		}
	}
}

// computed says why a part of a word is more than a variable's value or a pattern;
// "" if it is not.
func computed(n syntax.Node) string {
	switch p := n.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst:
		return "it puts in what another command prints"
	case *syntax.ArithmExp:
		return "it computes something as it runs"
	case *syntax.ParamExp:
		if p.Excl || p.Index != nil || p.Slice != nil || p.NestedParam != nil || p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
			return "it reads a variable as more than text"
		}
	}
	return ""
}

func (r *reader) hole() {
	r.text.WriteString(Hole)
	r.path.WriteString(Hole)
}

func (r *reader) both(s string) {
	s = strings.ReplaceAll(s, Hole, "") // $'\0' ends a text; nothing else makes one
	r.text.WriteString(s)
	r.path.WriteString(s)
}

func (r *reader) quoted(q *syntax.SglQuoted) {
	if !q.Dollar {
		r.both(q.Value)
		return
	}
	text, _, err := expand.Format(nil, q.Value, nil)
	if err != nil {
		r.hole()
		return
	}
	text, _, _ = strings.Cut(text, Hole)
	r.both(text)
}

// lit takes text outside of quotes, or within double ones, and drops its backslashes.
func (r *reader) lit(s string, quoted bool) {
	if !quoted && braces(s) {
		r.hole()
		return
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0):
			i++
			if s[i] != '\n' {
				r.both(s[i : i+1])
			}
		case !quoted && (c == '*' || c == '?'):
			r.text.WriteString(Hole)
			r.path.WriteByte(c)
		case !quoted && c == '[':
			end := strings.IndexByte(s[i+1:], ']')
			if end < 0 {
				r.both("[")
				break
			}
			r.text.WriteString(Hole)
			r.path.WriteString(s[i : i+1+end+1])
			i += end + 1
		default:
			r.both(s[i : i+1])
		}
	}
}

// braces tells whether text could stand for several words: {a,b} or {1..9}.
func braces(s string) bool {
	open := strings.IndexByte(s, '{')
	return open >= 0 && strings.IndexByte(s[open:], '}') > 0 && (strings.Contains(s[open:], ",") || strings.Contains(s[open:], ".."))
}

// collapse makes one of several Holes in a row.
func collapse(s string) string {
	for strings.Contains(s, Hole+Hole) {
		s = strings.ReplaceAll(s, Hole+Hole, Hole)
	}
	return s
}
