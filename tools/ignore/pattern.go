package ignore

import (
	"bytes"
	"slices"
	"strings"
)

// Limits of one .gitignore file. Whatever exceeds them is ignored.
const (
	maxFile     = 256 << 10 // bytes
	maxPatterns = 2000
	maxPattern  = 1000 // bytes
)

// A pattern is one line of a .gitignore file.
type pattern struct {
	negated     bool   // a line with !: what it matches is not left out after all
	folders     bool   // a line that ends in a slash: it matches folders only
	nameOnly    bool   // a line without any other slash: it matches names in all folders below
	literal     string // the pattern if it has no wildcards, else the text that the path must begin with before parts
	parts       []part // of a pattern with wildcards: the text between its slashes
	hasWildcard bool
}

// parse reads the lines of a .gitignore file.
func parse(content []byte) []pattern {
	content = bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	var list []pattern
	for line := range bytes.SplitSeq(content[:min(len(content), maxFile)], []byte("\n")) {
		text := withoutTrailingBlanks(strings.TrimSuffix(string(line), "\r"))
		if text == "" || text[0] == '#' || len(text) > maxPattern || len(list) == maxPatterns {
			continue
		}
		if p, ok := parseLine(text); ok {
			list = append(list, p)
		}
	}
	return list
}

// withoutTrailingBlanks removes blanks at the end, except one escaped with a backslash.
func withoutTrailingBlanks(text string) string {
	end := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(text))
	}
	return text[:end]
}

// parseLine reads one pattern; ok is false for one that matches nothing.
func parseLine(text string) (p pattern, ok bool) {
	text, p.negated = strings.CutPrefix(text, "!")
	text, p.folders = strings.CutSuffix(text, "/")
	p.nameOnly = !strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return p, false
	}
	if p.hasWildcard = strings.ContainsAny(text, `*?[\`); !p.hasWildcard {
		p.literal = text
		return p, true
	}
	if !p.nameOnly {
		p.literal, text = cutPrefix(text)
	}
	p.parts, ok = parseParts(text)
	return p, ok
}

// cutPrefix cuts off the text before the two stars of a pattern such as a**/b. Git compares that text first and
// then treats the stars like those of **/b, although its manual says that they count only between slashes.
func cutPrefix(text string) (prefix, rest string) {
	at := strings.IndexAny(text, `*?[\`)
	behind := strings.TrimLeft(text[at:], "*")
	if stars := len(text) - at - len(behind); stars > 1 && (behind == "" || behind[0] == '/') {
		return text[:at], text[at:]
	}
	return "", text
}

// matches reports whether the pattern matches an item, given its path from the folder of the
// .gitignore file.
func (p pattern) matches(path string, isFolder bool) bool {
	if p.folders && !isFolder {
		return false
	}
	if p.nameOnly {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	if !p.hasWildcard {
		return path == p.literal
	}
	rest, ok := strings.CutPrefix(path, p.literal)
	return ok && matchParts(p.parts, rest)
}

// A part is the text between two slashes of a pattern.
type part struct {
	anyFolders bool // **: any number of folders or, at the end, everything below
	pieces     []piece
}

// A piece matches one byte of a name or, if it is a star, any number of bytes. It matches bytes rather than
// characters, because git does.
type piece struct {
	star bool
	set  [4]uint64 // the bytes that it matches
}

func (c *piece) add(b byte)      { c.set[b>>6] |= 1 << (b & 63) }
func (c *piece) has(b byte) bool { return c.set[b>>6]&(1<<(b&63)) != 0 }

// addRange adds the bytes from one to another, both included.
func (c *piece) addRange(from, to byte) {
	for b := int(from); b <= int(to); b++ {
		c.add(byte(b))
	}
}

// parseParts parses a pattern with wildcards; false if a bracket isn't closed, or the pattern ends in a backslash.
func parseParts(text string) ([]part, bool) {
	var parts []part
	var now part
	for i := 0; i < len(text); {
		var p piece
		switch text[i] {
		case '/':
			parts, now = append(parts, now), part{}
			i++
			continue
		case '*':
			run := len(text[i:]) - len(strings.TrimLeft(text[i:], "*"))
			alone := len(now.pieces) == 0 && (i+run == len(text) || text[i+run] == '/')
			i += run
			if alone && run > 1 {
				now.anyFolders = true
				continue
			}
			p.star = true
		case '?':
			p.addRange(0, 255)
			i++
		case '[':
			end, ok := p.readSet(text, i+1)
			if !ok {
				return nil, false
			}
			i = end
		case '\\':
			if i++; i == len(text) {
				return nil, false
			}
			if text[i] == '/' {
				continue
			}
			p.add(text[i])
			i++
		default:
			p.add(text[i])
			i++
		}
		now.pieces = append(now.pieces, p)
	}
	return append(parts, now), true
}

// readSet reads a set of bytes, such as [a-z], from after its opening bracket on. It returns the index after the
// set; false if the set isn't closed.
func (c *piece) readSet(text string, i int) (end int, ok bool) {
	negated := i < len(text) && (text[i] == '!' || text[i] == '^')
	if negated {
		i++
	}
	for first := true; ; first = false {
		if i >= len(text) {
			return 0, false
		}
		if text[i] == ']' && !first {
			break
		}
		if class, behind, ok := namedClass(text[i:]); ok {
			if class == nil {
				return 0, false
			}
			for b := range 128 {
				if class(byte(b)) {
					c.add(byte(b))
				}
			}
			i += behind
			continue
		}
		from, next, ok := setByte(text, i)
		if !ok {
			return 0, false
		}
		to := from
		if next+1 < len(text) && text[next] == '-' && text[next+1] != ']' {
			if to, next, ok = setByte(text, next+1); !ok {
				return 0, false
			}
		}
		c.addRange(from, to)
		i = next
	}
	if negated {
		for w := range c.set {
			c.set[w] = ^c.set[w]
		}
	}
	return i + 1, true
}

// setByte reads one byte of a set, which may be escaped with a backslash; ok is false at the end of the text.
func setByte(text string, i int) (b byte, next int, ok bool) {
	if i < len(text) && text[i] == '\\' {
		i++
	}
	if i >= len(text) {
		return 0, 0, false
	}
	return text[i], i + 1, true
}

// namedClass reads a class such as [:alpha:]. ok says that there is one; class is nil if its name is unknown.
func namedClass(text string) (class func(byte) bool, behind int, ok bool) {
	if !strings.HasPrefix(text, "[:") {
		return nil, 0, false
	}
	end := strings.IndexByte(text, ']')
	if end < 3 || text[end-1] != ':' {
		return nil, 0, false // a literal bracket and colon
	}
	between := func(from, to byte) func(byte) bool { return func(b byte) bool { return from <= b && b <= to } }
	lower, upper, digit := between('a', 'z'), between('A', 'Z'), between('0', '9')
	alnum := func(b byte) bool { return lower(b) || upper(b) || digit(b) }
	classes := map[string]func(byte) bool{
		"alnum": alnum, "alpha": func(b byte) bool { return lower(b) || upper(b) }, "digit": digit, "lower": lower, "upper": upper,
		"blank": func(b byte) bool { return b == ' ' || b == '\t' }, "cntrl": func(b byte) bool { return b < 32 || b == 127 },
		"graph": between(33, 126), "print": between(32, 126), "punct": func(b byte) bool { return b > 32 && b < 127 && !alnum(b) },
		"space":  func(b byte) bool { return b == ' ' || 9 <= b && b <= 13 },
		"xdigit": func(b byte) bool { return digit(b) || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F' },
	}
	return classes[text[2:end-1]], end + 1, true
}

// matchParts reports whether a path matches a pattern. It backtracks only to the last star, so it takes at most
// time in proportion to the product of both lengths.
func matchParts(parts []part, path string) bool {
	names := strings.Split(path, "/")
	p, n := 0, 0
	star, from := -1, 0 // the last **, and the name up to which it extends
	for n < len(names) {
		switch {
		case p < len(parts) && parts[p].anyFolders:
			if p == len(parts)-1 {
				return true // matches everything below
			}
			star, from = p, n
			p++
		case p < len(parts) && matchName(parts[p].pieces, names[n]):
			p++
			n++
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return p == len(parts)
}

// matchName reports whether a name matches these pieces.
func matchName(pieces []piece, name string) bool {
	p, n := 0, 0
	star, from := -1, 0
	for n < len(name) {
		switch {
		case p < len(pieces) && pieces[p].star:
			star, from = p, n
			p++
		case p < len(pieces) && pieces[p].has(name[n]):
			p++
			n++
		case star >= 0:
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	return !slices.ContainsFunc(pieces[p:], func(c piece) bool { return !c.star })
}
