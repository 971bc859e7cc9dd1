package symbols

import "strings"

// A syntax says how comments and strings of a language look.
type syntax struct {
	slashes    bool // comments are // and /* */
	hash       bool // comments begin with #
	nested     bool // a /* may be within a comment
	multiline  bool // strings in quotes may go on in the next line
	tripled    bool // strings may be in three quotes
	directives bool // a line that begins with # is for the preprocessor
	rawStrings bool // R"x(…)x"
	templates  bool // strings in backquotes, with ${…} in them
	regexes    bool // /…/
	rust       bool // r#"…"#, and 'a that is no string
	php        bool // code stands between <?php and ?>
	ruby       bool // heredocs, %w[…], =begin and names that end in ? or !
	single     bool // '…' is a string as long as "…", and not a character
}

// The kinds of tokens.
const (
	word      = 'w' // a name, keyword or number
	text      = 's' // a string or a character
	directive = '#' // a line for the preprocessor
	group     = 'g' // braces with all that is in them
	punct     = 'p' // any other character, and ::, => and ->
)

// A token is one word, string or mark of a text.
type token struct {
	kind  byte
	first bool // it is the first one of its line
	glued bool // nothing stands between it and the token before
	text  string
	line  int
	col   int // counted from 0, in bytes
}

// is reports whether the token is this word or mark.
func (t token) is(s string) bool { return t.text == s && (t.kind == word || t.kind == punct) }

// A lexer makes tokens of a text. It never fails, and takes time in proportion to the text's length.
type lexer struct {
	src       string
	at        int
	line      int
	lineStart int
	seen      int // the line of the last token
	ended     int // where it ended
	last      token
	heredocs  []string // those that begin with the next line
	syntax
}

func newLexer(src string, s syntax) *lexer {
	l := &lexer{src: src, line: 1, syntax: s}
	if s.php {
		l.skipPage()
	}
	return l
}

// next returns the next token; false at the end.
func (l *lexer) next() (token, bool) {
	l.skipBlanks()
	if l.at >= len(l.src) {
		return token{}, false
	}
	t := token{first: l.line != l.seen, glued: l.ended == l.at, line: l.line, col: l.at - l.lineStart}
	start := l.at
	t.kind = l.read(t.first)
	t.text = l.src[start:l.at]
	l.seen, l.ended, l.last = l.line, l.at, t
	return t, true
}

// read reads one token and returns its kind.
func (l *lexer) read(first bool) byte {
	b := l.src[l.at]
	switch {
	case l.directives && b == '#' && first:
		l.skipDirective()
		return directive
	case l.skipString(b):
		return text
	case isWordByte(b):
		l.skipWord()
		return word
	}
	for _, pair := range [...]string{"::", "=>", "->", "==", "!=", "<=", ">=", "&&", "||", "<<"} {
		if strings.HasPrefix(l.src[l.at:], pair) {
			l.at += 2
			return punct
		}
	}
	l.at++
	return punct
}

// isWordByte reports whether a byte is part of names: a letter, digit, underscore or dollar, or any beyond ASCII.
func isWordByte(b byte) bool {
	return b >= 0x80 || b == '_' || b == '$' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

func (l *lexer) skipWord() {
	number := l.src[l.at] >= '0' && l.src[l.at] <= '9'
	for l.at < len(l.src) && (isWordByte(l.src[l.at]) || number && l.src[l.at] == '\'' && l.directives && l.peek(1) >= '0') {
		l.at++
	}
	if l.ruby && l.src[l.at-1] == '$' && (l.peek(0) == '\'' || l.peek(0) == '"' || l.peek(0) == '`') {
		l.at++ // a variable such as $'
	}
}

// peek returns the byte n behind the next one; 0 behind the end.
func (l *lexer) peek(n int) byte {
	if l.at+n >= len(l.src) {
		return 0
	}
	return l.src[l.at+n]
}

// skipBlanks skips blanks, line ends and comments.
func (l *lexer) skipBlanks() {
	for l.at < len(l.src) {
		b := l.src[l.at]
		switch {
		case b == '\n':
			l.newLine()
		case b == ' ' || b == '\t' || b == '\r' || b == '\f' || b == '\v':
			l.at++
		case b == '\\' && l.peek(1) == '\n', b == '\\' && l.peek(1) == '\r':
			l.at++
			if l.peek(0) == '\r' {
				l.at++
			}
			if l.peek(0) == '\n' && !l.ruby {
				seen := l.seen
				l.newLine()
				if seen == l.line-1 {
					l.seen = l.line // the statement goes on
				}
			}
		case l.php && strings.HasPrefix(l.src[l.at:], "?>"):
			l.skipPage()
		case l.slashes && b == '/' && l.peek(1) == '/', l.hash && b == '#' && (!l.php || l.peek(1) != '['):
			l.skipLine()
		case l.slashes && b == '/' && l.peek(1) == '*':
			l.skipComment()
		default:
			return
		}
	}
}

// newLine goes on to the next line, and behind the heredocs that begin there.
func (l *lexer) newLine() {
	l.at++
	l.line++
	l.lineStart = l.at
	for len(l.heredocs) > 0 {
		id := l.heredocs[0]
		l.heredocs = l.heredocs[1:]
		l.skipLinesUntil(func(line string) bool { return strings.TrimSpace(line) == id })
	}
	if l.ruby && strings.HasPrefix(l.src[l.at:], "=begin") {
		l.skipLinesUntil(func(line string) bool { return strings.HasPrefix(line, "=end") })
	}
}

// skipLinesUntil skips all lines up to one, and that one too.
func (l *lexer) skipLinesUntil(last func(line string) bool) {
	for l.at < len(l.src) {
		line, _, more := strings.Cut(l.src[l.at:], "\n")
		l.at += len(line)
		if more {
			l.at++
			l.line++
		}
		l.lineStart = l.at
		if last(line) {
			return
		}
	}
}

// skipLine skips the rest of a line, or of a page's code, but not its end.
func (l *lexer) skipLine() {
	for l.at < len(l.src) && l.src[l.at] != '\n' {
		if l.php && l.src[l.at] == '?' && l.peek(1) == '>' {
			return
		}
		l.at++
	}
}

// skipTo skips to end, and counts the lines.
func (l *lexer) skipTo(end int) {
	skipped := l.src[l.at:end]
	if n := strings.Count(skipped, "\n"); n > 0 {
		l.line += n
		l.lineStart = l.at + strings.LastIndexByte(skipped, '\n') + 1
	}
	l.at = end
}

// skipComment skips a comment that has an end.
func (l *lexer) skipComment() {
	end, depth := l.at+2, 1
	for depth > 0 && end < len(l.src) {
		switch {
		case strings.HasPrefix(l.src[end:], "*/"):
			depth--
			end += 2
		case l.nested && strings.HasPrefix(l.src[end:], "/*"):
			depth++
			end += 2
		default:
			end++
		}
	}
	l.skipTo(min(end, len(l.src)))
}

// skipPage skips what stands outside of PHP's code.
func (l *lexer) skipPage() {
	end := len(l.src)
	if begin := strings.Index(l.src[l.at:], "<?"); begin >= 0 {
		end = l.at + begin + 2
		for _, name := range []string{"php", "="} {
			if strings.HasPrefix(l.src[end:], name) {
				end += len(name)
				break
			}
		}
	}
	l.skipTo(end)
}

// skipDirective skips a line for the preprocessor, and those that continue it.
func (l *lexer) skipDirective() {
	end := l.at
	for end < len(l.src) {
		line, _, more := strings.Cut(l.src[end:], "\n")
		end += len(line)
		if !more || !strings.HasSuffix(strings.TrimSuffix(line, "\r"), `\`) {
			break
		}
		end++
	}
	l.skipTo(end)
}
