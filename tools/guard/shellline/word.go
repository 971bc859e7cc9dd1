package shellline

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Hole is the placeholder in a command's text for what is known only when the line runs. A line
// itself cannot contain a Hole.
const Hole = "\x00"

// A word is one word of a command as the program would get it.
type word struct {
	// text has a Hole in place of whatever is known only when the line runs, including the file
	// names that a pattern matches.
	text string
	// path is the same text, except that file name patterns are left as written, so that one sees
	// which folder they look in.
	path string
}

// literal returns a word for a known text.
func literal(s string) word {
	s = strings.ReplaceAll(s, Hole, "")
	return word{s, s}
}

// isKnown reports whether all of the word is known before the line runs.
func (w word) isKnown() bool { return !strings.Contains(w.text, Hole) }

// A wordReader assembles a word from its parts.
type wordReader struct {
	text, path strings.Builder
}

// readWord returns the word as the program would get it, without quotes.
func readWord(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	var r wordReader
	r.readParts(w.Parts, false)
	return word{mergeHoles(r.text.String()), r.path.String()}
}

func (r *wordReader) readParts(parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			r.readLiteral(p.Value, quoted)
		case *syntax.SglQuoted:
			r.readQuoted(p)
		case *syntax.DblQuoted:
			r.readParts(p.Parts, true)
		default: // a variable, the output of a command, a pattern
			r.writeHole()
		}
	}
}

// whyComputed says why nobody can tell the value of a part of a word before the line runs. It
// returns "" for a part that is known, the plain value of a variable, and a file name pattern.
func whyComputed(n syntax.Node) string {
	switch p := n.(type) {
	case *syntax.CmdSubst, *syntax.ProcSubst:
		return "it inserts what another command prints"
	case *syntax.ArithmExp:
		return "it computes something while it runs"
	case *syntax.ParamExp:
		if p.Excl || p.Index != nil || p.Slice != nil || p.NestedParam != nil || p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
			return "it uses a variable for more than its text"
		}
	}
	return ""
}

// writeHole adds a Hole to both texts.
func (r *wordReader) writeHole() {
	r.text.WriteString(Hole)
	r.path.WriteString(Hole)
}

// writeBoth adds a known text to both texts.
func (r *wordReader) writeBoth(s string) {
	s = strings.ReplaceAll(s, Hole, "") // $'\0' ends a text; nothing else makes a NUL byte
	r.text.WriteString(s)
	r.path.WriteString(s)
}

// readQuoted reads a text in single quotes, and decodes the escapes of $'…'.
func (r *wordReader) readQuoted(q *syntax.SglQuoted) {
	if !q.Dollar {
		r.writeBoth(q.Value)
		return
	}
	text, _, err := expand.Format(nil, q.Value, nil)
	if err != nil {
		r.writeHole()
		return
	}
	text, _, _ = strings.Cut(text, Hole)
	r.writeBoth(text)
}

// readLiteral reads text outside quotes, or within double quotes, and drops its backslashes.
func (r *wordReader) readLiteral(s string, quoted bool) {
	if !quoted && hasBraces(s) {
		r.writeHole()
		return
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0):
			i++
			if s[i] != '\n' {
				r.writeBoth(s[i : i+1])
			}
		case !quoted && (c == '*' || c == '?'):
			r.text.WriteString(Hole)
			r.path.WriteByte(c)
		case !quoted && c == '[':
			end := strings.IndexByte(s[i+1:], ']')
			if end < 0 {
				r.writeBoth("[")
				break
			}
			r.text.WriteString(Hole)
			r.path.WriteString(s[i : i+1+end+1])
			i += end + 1
		default:
			r.writeBoth(s[i : i+1])
		}
	}
}

// hasBraces reports whether the shell could expand text to several words: {a,b} or {1..9}.
func hasBraces(s string) bool {
	open := strings.IndexByte(s, '{')
	return open >= 0 && strings.IndexByte(s[open:], '}') > 0 && (strings.Contains(s[open:], ",") || strings.Contains(s[open:], ".."))
}

// mergeHoles replaces several Holes in a row with one.
func mergeHoles(s string) string {
	for strings.Contains(s, Hole+Hole) {
		s = strings.ReplaceAll(s, Hole+Hole, Hole)
	}
	return s
}

// joinWords joins words into one text, which a shell parses again.
func joinWords(args []word) word {
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
	}
	text := strings.Join(texts, " ")
	return word{text, text}
}

// literalWithHoles returns a word for a text that may contain Holes.
func literalWithHoles(s string) word { return word{s, s} }
